// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Names of values in structures.

var (
	fsTypes = event.Enum("fs",
		b("QNX4_SUPER_MAGIC", 0x2f), b("AUTOFS_SUPER_MAGIC", 0x187), b("MINIX_SUPER_MAGIC", 0x137f), b("MINIX_SUPER_MAGIC2", 0x138f),
		b("DEVPTS_SUPER_MAGIC", 0x1cd1), b("MINIX2_SUPER_MAGIC", 0x2468), b("MINIX2_SUPER_MAGIC2", 0x2478), b("NILFS_SUPER_MAGIC", 0x3434),
		b("MSDOS_SUPER_MAGIC", 0x4d44), b("MINIX3_SUPER_MAGIC", 0x4d5a), b("SMB_SUPER_MAGIC", 0x517b), b("NCP_SUPER_MAGIC", 0x564c),
		b("NFS_SUPER_MAGIC", 0x6969), b("JFFS2_SUPER_MAGIC", 0x72b6), b("ISOFS_SUPER_MAGIC", 0x9660), b("PROC_SUPER_MAGIC", 0x9fa0),
		b("OPENPROM_SUPER_MAGIC", 0x9fa1), b("USBDEVICE_SUPER_MAGIC", 0x9fa2), b("ADFS_SUPER_MAGIC", 0xadf5), b("AFFS_SUPER_MAGIC", 0xadff),
		b("EXT2_SUPER_MAGIC", 0xef53), b("ECRYPTFS_SUPER_MAGIC", 0xf15f), b("CGROUP_SUPER_MAGIC", 0x27e0eb), b("EFS_SUPER_MAGIC", 0x414a53),
		b("HOSTFS_SUPER_MAGIC", 0xc0ffee), b("CEPH_SUPER_MAGIC", 0xc36400), b("TMPFS_MAGIC", 0x1021994), b("V9FS_MAGIC", 0x1021997),
		b("RDTGROUP_SUPER_MAGIC", 0x7655821), b("ANON_INODE_FS_MAGIC", 0x9041934), b("FUTEXFS_SUPER_MAGIC", 0xbad1dea), b("MTD_INODE_FS_MAGIC", 0x11307854),
		b("UDF_SUPER_MAGIC", 0x15013346), b("MQUEUE_MAGIC", 0x19800202), b("EXFAT_SUPER_MAGIC", 0x2011bab0), b("CRAMFS_MAGIC", 0x28cd3d45),
		b("ZFS_SUPER_MAGIC", 0x2fc12fc1), b("BINFMTFS_MAGIC", 0x42494e4d), b("SMACK_MAGIC", 0x43415d53), b("DMA_BUF_MAGIC", 0x444d4142),
		b("CRAMFS_MAGIC_WEND", 0x453dcd28), b("DEVMEM_MAGIC", 0x454d444d), b("PID_FS_MAGIC", 0x50494446), b("PIPEFS_MAGIC", 0x50495045),
		b("REISERFS_SUPER_MAGIC", 0x52654973), b("SECRETMEM_MAGIC", 0x5345434d), b("AFS_SUPER_MAGIC", 0x5346414f), b("SOCKFS_MAGIC", 0x534f434b),
		b("XFS_SUPER_MAGIC", 0x58465342), b("AAFS_MAGIC", 0x5a3c69f0), b("ZONEFS_MAGIC", 0x5a4f4653), b("PSTOREFS_MAGIC", 0x6165676c),
		b("BDEVFS_MAGIC", 0x62646576), b("SYSFS_MAGIC", 0x62656572), b("CGROUP2_SUPER_MAGIC", 0x63677270), b("DEBUGFS_MAGIC", 0x64626720),
		b("DAXFS_MAGIC", 0x64646178), b("FUSE_SUPER_MAGIC", 0x65735546), b("QNX6_SUPER_MAGIC", 0x68191122), b("AFS_FS_MAGIC", 0x6b414653),
		b("BINDERFS_SUPER_MAGIC", 0x6c6f6f70), b("NSFS_MAGIC", 0x6e736673), b("SECURITYFS_MAGIC", 0x73636673), b("SQUASHFS_MAGIC", 0x73717368),
		b("CODA_SUPER_MAGIC", 0x73757245), b("OCFS2_SUPER_MAGIC", 0x7461636f), b("TRACEFS_MAGIC", 0x74726163), b("OVERLAYFS_SUPER_MAGIC", 0x794c7630),
		b("RAMFS_MAGIC", 0x858458f6), b("BTRFS_SUPER_MAGIC", 0x9123683e), b("HUGETLBFS_MAGIC", 0x958458f6), b("XENFS_SUPER_MAGIC", 0xabba1974),
		b("BCACHEFS_SUPER_MAGIC", 0xca451a4e), b("BPF_FS_MAGIC", 0xcafe4a11), b("EFIVARFS_MAGIC", 0xde5e81e4), b("EROFS_SUPER_MAGIC_V1", 0xe0f5e1e2),
		b("F2FS_SUPER_MAGIC", 0xf2f52010), b("SELINUX_MAGIC", 0xf97cff8c), b("HPFS_SUPER_MAGIC", 0xf995e849), b("SMB2_SUPER_MAGIC", 0xfe534d42),
		b("CIFS_SUPER_MAGIC", 0xff534d42))
	statxAttributes = event.Bits("stx_attributes", "0",
		b("STATX_ATTR_COMPRESSED", 4), b("STATX_ATTR_IMMUTABLE", 0x10), b("STATX_ATTR_APPEND", 0x20), b("STATX_ATTR_NODUMP", 0x40),
		b("STATX_ATTR_ENCRYPTED", 0x800), b("STATX_ATTR_AUTOMOUNT", 0x1000), b("STATX_ATTR_MOUNT_ROOT", 0x2000), b("STATX_ATTR_VERITY", 0x100000),
		b("STATX_ATTR_DAX", 0x200000), b("STATX_ATTR_WRITE_ATOMIC", 0x400000))
	statfsFlags = event.Bits("statfs", "0",
		b("ST_RDONLY", 1), b("ST_NOSUID", 2), b("ST_NODEV", 4), b("ST_NOEXEC", 8), b("ST_SYNCHRONOUS", 0x10), b("ST_VALID", 0x20), b("ST_MANDLOCK", 0x40),
		b("ST_WRITE", 0x80), b("ST_APPEND", 0x100), b("ST_IMMUTABLE", 0x200), b("ST_NOATIME", 0x400), b("ST_NODIRATIME", 0x800), b("ST_RELATIME", 0x1000),
		b("ST_NOSYMFOLLOW", 0x2000))
	xflags = event.Bits("fsx_xflags", "0",
		b("FS_XFLAG_REALTIME", 1), b("FS_XFLAG_PREALLOC", 2), b("FS_XFLAG_IMMUTABLE", 8), b("FS_XFLAG_APPEND", 0x10), b("FS_XFLAG_SYNC", 0x20),
		b("FS_XFLAG_NOATIME", 0x40), b("FS_XFLAG_NODUMP", 0x80), b("FS_XFLAG_RTINHERIT", 0x100), b("FS_XFLAG_PROJINHERIT", 0x200),
		b("FS_XFLAG_NOSYMLINKS", 0x400), b("FS_XFLAG_EXTSIZE", 0x800), b("FS_XFLAG_EXTSZINHERIT", 0x1000), b("FS_XFLAG_NODEFRAG", 0x2000),
		b("FS_XFLAG_FILESTREAM", 0x4000), b("FS_XFLAG_DAX", 0x8000), b("FS_XFLAG_COWEXTSIZE", 0x10000), b("FS_XFLAG_HASATTR", 0x80000000))
	fiemapFlags = event.Bits("fiemap", "0",
		b("FIEMAP_FLAG_SYNC", 1), b("FIEMAP_FLAG_XATTR", 2), b("FIEMAP_FLAG_CACHE", 4))
	extentFlags = event.Bits("fiemap_extent", "0",
		b("FIEMAP_EXTENT_LAST", 1), b("FIEMAP_EXTENT_UNKNOWN", 2), b("FIEMAP_EXTENT_DELALLOC", 4), b("FIEMAP_EXTENT_ENCODED", 8),
		b("FIEMAP_EXTENT_DATA_ENCRYPTED", 0x80), b("FIEMAP_EXTENT_NOT_ALIGNED", 0x100), b("FIEMAP_EXTENT_DATA_INLINE", 0x200),
		b("FIEMAP_EXTENT_DATA_TAIL", 0x400), b("FIEMAP_EXTENT_UNWRITTEN", 0x800), b("FIEMAP_EXTENT_MERGED", 0x1000), b("FIEMAP_EXTENT_SHARED", 0x2000))
	direntTypes = event.Enum("d_type",
		b("DT_UNKNOWN", 0), b("DT_FIFO", 1), b("DT_CHR", 2), b("DT_DIR", 4), b("DT_BLK", 6), b("DT_REG", 8), b("DT_LNK", 10), b("DT_SOCK", 12),
		b("DT_WHT", 14))
	clockStates = event.Bits("timex_status", "0",
		b("STA_PLL", 1), b("STA_PPSFREQ", 2), b("STA_PPSTIME", 4), b("STA_FLL", 8), b("STA_INS", 0x10), b("STA_DEL", 0x20), b("STA_UNSYNC", 0x40),
		b("STA_FREQHOLD", 0x80), b("STA_PPSSIGNAL", 0x100), b("STA_PPSJITTER", 0x200), b("STA_PPSWANDER", 0x400), b("STA_PPSERROR", 0x800),
		b("STA_CLOCKERR", 0x1000), b("STA_NANO", 0x2000), b("STA_MODE", 0x4000), b("STA_CLK", 0x8000))
	aioOps = event.Enum("iocb",
		b("IOCB_CMD_PREAD", 0), b("IOCB_CMD_PWRITE", 1), b("IOCB_CMD_FSYNC", 2), b("IOCB_CMD_FDSYNC", 3), b("IOCB_CMD_PREADX", 4), b("IOCB_CMD_POLL", 5),
		b("IOCB_CMD_NOOP", 6), b("IOCB_CMD_PREADV", 7), b("IOCB_CMD_PWRITEV", 8))
	aioFlags = event.Bits("iocb_flags", "0",
		b("IOCB_FLAG_RESFD", 1), b("IOCB_FLAG_IOPRIO", 2))
	etherProtocols = event.Enum("ether",
		b("ETH_P_802_3", 1), b("ETH_P_AX25", 2), b("ETH_P_ALL", 3), b("ETH_P_802_2", 4), b("ETH_P_SNAP", 5), b("ETH_P_DDCMP", 6), b("ETH_P_WAN_PPP", 7),
		b("ETH_P_PPP_MP", 8), b("ETH_P_LOCALTALK", 9), b("ETH_P_CAN", 0xc), b("ETH_P_CANFD", 0xd), b("ETH_P_CANXL", 0xe), b("ETH_P_PPPTALK", 0x10),
		b("ETH_P_TR_802_2", 0x11), b("ETH_P_MOBITEX", 0x15), b("ETH_P_CONTROL", 0x16), b("ETH_P_IRDA", 0x17), b("ETH_P_ECONET", 0x18), b("ETH_P_HDLC", 0x19),
		b("ETH_P_ARCNET", 0x1a), b("ETH_P_DSA", 0x1b), b("ETH_P_TRAILER", 0x1c), b("ETH_P_LOOP", 0x60), b("ETH_P_PHONET", 0xf5), b("ETH_P_IEEE802154", 0xf6),
		b("ETH_P_CAIF", 0xf7), b("ETH_P_XDSA", 0xf8), b("ETH_P_MAP", 0xf9), b("ETH_P_MCTP", 0xfa), b("ETH_P_PUP", 0x200), b("ETH_P_PUPAT", 0x201),
		b("ETH_P_IP", 0x800), b("ETH_P_X25", 0x805), b("ETH_P_ARP", 0x806), b("ETH_P_BPQ", 0x8ff), b("ETH_P_IEEEPUP", 0xa00), b("ETH_P_IEEEPUPAT", 0xa01),
		b("ETH_P_ERSPAN2", 0x22eb), b("ETH_P_TSN", 0x22f0), b("ETH_P_BATMAN", 0x4305), b("ETH_P_DEC", 0x6000), b("ETH_P_DNA_DL", 0x6001),
		b("ETH_P_DNA_RC", 0x6002), b("ETH_P_DNA_RT", 0x6003), b("ETH_P_LAT", 0x6004), b("ETH_P_DIAG", 0x6005), b("ETH_P_CUST", 0x6006), b("ETH_P_SCA", 0x6007),
		b("ETH_P_TEB", 0x6558), b("ETH_P_RARP", 0x8035), b("ETH_P_ATALK", 0x809b), b("ETH_P_AARP", 0x80f3), b("ETH_P_8021Q", 0x8100), b("ETH_P_IPX", 0x8137),
		b("ETH_P_IPV6", 0x86dd), b("ETH_P_PAUSE", 0x8808), b("ETH_P_SLOW", 0x8809), b("ETH_P_WCCP", 0x883e), b("ETH_P_MPLS_UC", 0x8847),
		b("ETH_P_MPLS_MC", 0x8848), b("ETH_P_ATMMPOA", 0x884c), b("ETH_P_PPP_DISC", 0x8863), b("ETH_P_PPP_SES", 0x8864), b("ETH_P_LINK_CTL", 0x886c),
		b("ETH_P_ATMFATE", 0x8884), b("ETH_P_PAE", 0x888e), b("ETH_P_PROFINET", 0x8892), b("ETH_P_REALTEK", 0x8899), b("ETH_P_AOE", 0x88a2),
		b("ETH_P_ETHERCAT", 0x88a4), b("ETH_P_8021AD", 0x88a8), b("ETH_P_802_EX1", 0x88b5), b("ETH_P_ERSPAN", 0x88be), b("ETH_P_PREAUTH", 0x88c7),
		b("ETH_P_TIPC", 0x88ca), b("ETH_P_LLDP", 0x88cc), b("ETH_P_MRP", 0x88e3), b("ETH_P_MACSEC", 0x88e5), b("ETH_P_8021AH", 0x88e7),
		b("ETH_P_MVRP", 0x88f5), b("ETH_P_1588", 0x88f7), b("ETH_P_NCSI", 0x88f8), b("ETH_P_PRP", 0x88fb), b("ETH_P_CFM", 0x8902), b("ETH_P_FCOE", 0x8906),
		b("ETH_P_TDLS", 0x890d), b("ETH_P_FIP", 0x8914), b("ETH_P_IBOE", 0x8915), b("ETH_P_80221", 0x8917), b("ETH_P_HSR", 0x892f), b("ETH_P_NSH", 0x894f),
		b("ETH_P_LOOPBACK", 0x9000), b("ETH_P_QINQ1", 0x9100), b("ETH_P_QINQ2", 0x9200), b("ETH_P_QINQ3", 0x9300), b("ETH_P_EDSA", 0xdada),
		b("ETH_P_DSA_8021Q", 0xdadb), b("ETH_P_DSA_A5PSW", 0xe001), b("ETH_P_IFE", 0xed3e), b("ETH_P_AF_IUCV", 0xfbfb))
	hardwareTypes = event.Enum("arphrd",
		b("ARPHRD_NETROM", 0), b("ARPHRD_ETHER", 1), b("ARPHRD_EETHER", 2), b("ARPHRD_AX25", 3), b("ARPHRD_PRONET", 4), b("ARPHRD_CHAOS", 5),
		b("ARPHRD_IEEE802", 6), b("ARPHRD_ARCNET", 7), b("ARPHRD_APPLETLK", 8), b("ARPHRD_DLCI", 0xf), b("ARPHRD_ATM", 0x13), b("ARPHRD_METRICOM", 0x17),
		b("ARPHRD_IEEE1394", 0x18), b("ARPHRD_EUI64", 0x1b), b("ARPHRD_INFINIBAND", 0x20), b("ARPHRD_SLIP", 0x100), b("ARPHRD_CSLIP", 0x101),
		b("ARPHRD_SLIP6", 0x102), b("ARPHRD_CSLIP6", 0x103), b("ARPHRD_RSRVD", 0x104), b("ARPHRD_ADAPT", 0x108), b("ARPHRD_ROSE", 0x10e),
		b("ARPHRD_X25", 0x10f), b("ARPHRD_HWX25", 0x110), b("ARPHRD_CAN", 0x118), b("ARPHRD_MCTP", 0x122), b("ARPHRD_PPP", 0x200), b("ARPHRD_HDLC", 0x201),
		b("ARPHRD_LAPB", 0x204), b("ARPHRD_DDCMP", 0x205), b("ARPHRD_RAWHDLC", 0x206), b("ARPHRD_RAWIP", 0x207), b("ARPHRD_TUNNEL", 0x300),
		b("ARPHRD_TUNNEL6", 0x301), b("ARPHRD_FRAD", 0x302), b("ARPHRD_SKIP", 0x303), b("ARPHRD_LOOPBACK", 0x304), b("ARPHRD_LOCALTLK", 0x305),
		b("ARPHRD_FDDI", 0x306), b("ARPHRD_BIF", 0x307), b("ARPHRD_SIT", 0x308), b("ARPHRD_IPDDP", 0x309), b("ARPHRD_IPGRE", 0x30a), b("ARPHRD_PIMREG", 0x30b),
		b("ARPHRD_HIPPI", 0x30c), b("ARPHRD_ASH", 0x30d), b("ARPHRD_ECONET", 0x30e), b("ARPHRD_IRDA", 0x30f), b("ARPHRD_FCPP", 0x310), b("ARPHRD_FCAL", 0x311),
		b("ARPHRD_FCPL", 0x312), b("ARPHRD_FCFABRIC", 0x313), b("ARPHRD_IEEE802_TR", 0x320), b("ARPHRD_IEEE80211", 0x321), b("ARPHRD_IEEE80211_PRISM", 0x322),
		b("ARPHRD_IEEE80211_RADIOTAP", 0x323), b("ARPHRD_IEEE802154", 0x324), b("ARPHRD_IEEE802154_MONITOR", 0x325), b("ARPHRD_PHONET", 0x334),
		b("ARPHRD_PHONET_PIPE", 0x335), b("ARPHRD_CAIF", 0x336), b("ARPHRD_IP6GRE", 0x337), b("ARPHRD_NETLINK", 0x338), b("ARPHRD_6LOWPAN", 0x339),
		b("ARPHRD_VSOCKMON", 0x33a), b("ARPHRD_NONE", 0xfffe), b("ARPHRD_VOID", 0xffff))
	packetTypes = event.Enum("pkttype",
		b("PACKET_HOST", 0), b("PACKET_BROADCAST", 1), b("PACKET_MULTICAST", 2), b("PACKET_OTHERHOST", 3), b("PACKET_OUTGOING", 4), b("PACKET_LOOPBACK", 5),
		b("PACKET_USER", 6), b("PACKET_KERNEL", 7))
	packetGroups = event.Enum("packet_group",
		b("PACKET_MR_MULTICAST", 0), b("PACKET_MR_PROMISC", 1), b("PACKET_MR_ALLMULTI", 2), b("PACKET_MR_UNICAST", 3))
	perfTypes = event.Enum("perf_type",
		b("PERF_TYPE_HARDWARE", 0), b("PERF_TYPE_SOFTWARE", 1), b("PERF_TYPE_TRACEPOINT", 2), b("PERF_TYPE_HW_CACHE", 3), b("PERF_TYPE_RAW", 4),
		b("PERF_TYPE_BREAKPOINT", 5))
	loopFlags = event.Bits("loop", "0",
		b("LO_FLAGS_READ_ONLY", 1), b("LO_FLAGS_AUTOCLEAR", 4), b("LO_FLAGS_PARTSCAN", 8), b("LO_FLAGS_DIRECT_IO", 0x10))
	quotaValid = event.Bits("quota_valid", "0",
		b("QIF_INODES_B", 3), b("QIF_ITIME_B", 5), b("QIF_BLIMITS", 1), b("QIF_SPACE_B", 1), b("QIF_SPACE", 2), b("QIF_ILIMITS_B", 2), b("QIF_ILIMITS", 4),
		b("QIF_BTIME_B", 4), b("QIF_INODES", 8), b("QIF_BTIME", 0x10), b("QIF_ITIME", 0x20))
	quotaInfoValid = event.Bits("quota_info_valid", "0",
		b("IIF_BGRACE", 1), b("IIF_IGRACE", 2), b("IIF_FLAGS", 4))
	interfaceFlags = event.Bits("interface", "0",
		b("IFF_UP", 1), b("IFF_BROADCAST", 2), b("IFF_DEBUG", 4), b("IFF_LOOPBACK", 8), b("IFF_POINTOPOINT", 0x10), b("IFF_NOTRAILERS", 0x20),
		b("IFF_RUNNING", 0x40), b("IFF_NOARP", 0x80), b("IFF_PROMISC", 0x100), b("IFF_ALLMULTI", 0x200), b("IFF_MASTER", 0x400), b("IFF_SLAVE", 0x800),
		b("IFF_MULTICAST", 0x1000), b("IFF_PORTSEL", 0x2000), b("IFF_AUTOMEDIA", 0x4000), b("IFF_DYNAMIC", 0x8000))
	inputModes = event.Bits("c_iflag", "0",
		b("IGNBRK", 1), b("BRKINT", 2), b("IGNPAR", 4), b("PARMRK", 8), b("INPCK", 0x10), b("ISTRIP", 0x20), b("INLCR", 0x40), b("IGNCR", 0x80),
		b("ICRNL", 0x100), b("IUCLC", 0x200), b("IXON", 0x400), b("IXANY", 0x800), b("IXOFF", 0x1000), b("IMAXBEL", 0x2000), b("IUTF8", 0x4000))
	localModes = event.Bits("c_lflag", "0",
		b("ISIG", 1), b("ICANON", 2), b("XCASE", 4), b("ECHO", 8), b("ECHOE", 0x10), b("ECHOK", 0x20), b("ECHONL", 0x40), b("NOFLSH", 0x80),
		b("TOSTOP", 0x100), b("ECHOCTL", 0x200), b("ECHOPRT", 0x400), b("ECHOKE", 0x800), b("FLUSHO", 0x1000), b("PENDIN", 0x4000), b("IEXTEN", 0x8000),
		b("EXTPROC", 0x10000))
	disciplines = event.Enum("c_line",
		b("N_TTY", 0), b("N_SLIP", 1), b("N_MOUSE", 2), b("N_PPP", 3), b("N_STRIP", 4), b("N_AX25", 5), b("N_X25", 6), b("N_6PACK", 7), b("N_MASC", 8),
		b("N_R3964", 9), b("N_PROFIBUS_FDL", 10), b("N_IRDA", 11), b("N_SMSBLOCK", 12), b("N_HDLC", 13), b("N_SYNC_PPP", 14), b("N_HCI", 15),
		b("N_GIGASET_M101", 16), b("N_SLCAN", 17), b("N_PPS", 18), b("N_V253", 19), b("N_CAIF", 20), b("N_GSM0710", 21), b("N_TI_WL", 22),
		b("N_TRACESINK", 23), b("N_TRACEROUTER", 24), b("N_NCI", 25), b("N_SPEAKUP", 26), b("N_NULL", 27), b("N_MCTP", 28), b("N_CAN327", 30))
	inodeFlags = event.Bits("inode_flags", "0",
		b("FS_SECRM_FL", 1), b("FS_UNRM_FL", 2), b("FS_COMPR_FL", 4), b("FS_SYNC_FL", 8), b("FS_IMMUTABLE_FL", 0x10), b("FS_APPEND_FL", 0x20),
		b("FS_NODUMP_FL", 0x40), b("FS_NOATIME_FL", 0x80), b("FS_DIRTY_FL", 0x100), b("FS_COMPRBLK_FL", 0x200), b("FS_NOCOMP_FL", 0x400),
		b("FS_ENCRYPT_FL", 0x800), b("FS_BTREE_FL", 0x1000), b("FS_INDEX_FL", 0x1000), b("FS_IMAGIC_FL", 0x2000), b("FS_JOURNAL_DATA_FL", 0x4000),
		b("FS_NOTAIL_FL", 0x8000), b("FS_DIRSYNC_FL", 0x10000), b("FS_TOPDIR_FL", 0x20000), b("FS_HUGE_FILE_FL", 0x40000), b("FS_EXTENT_FL", 0x80000),
		b("FS_VERITY_FL", 0x100000), b("FS_EA_INODE_FL", 0x200000), b("FS_EOFBLOCKS_FL", 0x400000), b("FS_NOCOW_FL", 0x800000), b("FS_DAX_FL", 0x2000000),
		b("FS_INLINE_DATA_FL", 0x10000000), b("FS_PROJINHERIT_FL", 0x20000000), b("FS_CASEFOLD_FL", 0x40000000), b("FS_RESERVED_FL", 0x80000000))
	modemLines = event.Bits("modem", "0",
		b("TIOCM_LE", 1), b("TIOCM_DTR", 2), b("TIOCM_RTS", 4), b("TIOCM_ST", 8), b("TIOCM_SR", 0x10), b("TIOCM_CTS", 0x20), b("TIOCM_CAR", 0x40),
		b("TIOCM_CD", 0x40), b("TIOCM_RNG", 0x80), b("TIOCM_RI", 0x80), b("TIOCM_DSR", 0x100))
	perfSamples = event.Bits("sample_type", "0",
		b("PERF_SAMPLE_IP", 1), b("PERF_SAMPLE_TID", 2), b("PERF_SAMPLE_TIME", 4), b("PERF_SAMPLE_ADDR", 8), b("PERF_SAMPLE_READ", 0x10),
		b("PERF_SAMPLE_CALLCHAIN", 0x20), b("PERF_SAMPLE_ID", 0x40), b("PERF_SAMPLE_CPU", 0x80), b("PERF_SAMPLE_PERIOD", 0x100),
		b("PERF_SAMPLE_STREAM_ID", 0x200), b("PERF_SAMPLE_RAW", 0x400), b("PERF_SAMPLE_REGS_USER", 0x1000), b("PERF_SAMPLE_STACK_USER", 0x2000),
		b("PERF_SAMPLE_WEIGHT", 0x4000), b("PERF_SAMPLE_DATA_SRC", 0x8000), b("PERF_SAMPLE_IDENTIFIER", 0x10000), b("PERF_SAMPLE_TRANSACTION", 0x20000),
		b("PERF_SAMPLE_REGS_INTR", 0x40000), b("PERF_SAMPLE_PHYS_ADDR", 0x80000), b("PERF_SAMPLE_AUX", 0x100000), b("PERF_SAMPLE_CGROUP", 0x200000),
		b("PERF_SAMPLE_DATA_PAGE_SIZE", 0x400000), b("PERF_SAMPLE_CODE_PAGE_SIZE", 0x800000), b("PERF_SAMPLE_WEIGHT_STRUCT", 0x1000000))
	perfFormats = event.Bits("read_format", "0",
		b("PERF_FORMAT_TOTAL_TIME_ENABLED", 1), b("PERF_FORMAT_TOTAL_TIME_RUNNING", 2), b("PERF_FORMAT_ID", 4), b("PERF_FORMAT_GROUP", 8),
		b("PERF_FORMAT_LOST", 0x10))
	perfConfigs = map[uint64]*event.Set{0: event.Enum("perf_hardware",
		b("PERF_COUNT_HW_CPU_CYCLES", 0), b("PERF_COUNT_HW_INSTRUCTIONS", 1), b("PERF_COUNT_HW_CACHE_REFERENCES", 2), b("PERF_COUNT_HW_CACHE_MISSES", 3),
		b("PERF_COUNT_HW_BRANCH_INSTRUCTIONS", 4), b("PERF_COUNT_HW_BRANCH_MISSES", 5), b("PERF_COUNT_HW_BUS_CYCLES", 6),
		b("PERF_COUNT_HW_STALLED_CYCLES_FRONTEND", 7), b("PERF_COUNT_HW_STALLED_CYCLES_BACKEND", 8), b("PERF_COUNT_HW_REF_CPU_CYCLES", 9)), 1: event.Enum("perf_software",
		b("PERF_COUNT_SW_CPU_CLOCK", 0), b("PERF_COUNT_SW_TASK_CLOCK", 1), b("PERF_COUNT_SW_PAGE_FAULTS", 2), b("PERF_COUNT_SW_CONTEXT_SWITCHES", 3),
		b("PERF_COUNT_SW_CPU_MIGRATIONS", 4), b("PERF_COUNT_SW_PAGE_FAULTS_MIN", 5), b("PERF_COUNT_SW_PAGE_FAULTS_MAJ", 6),
		b("PERF_COUNT_SW_ALIGNMENT_FAULTS", 7), b("PERF_COUNT_SW_EMULATION_FAULTS", 8), b("PERF_COUNT_SW_DUMMY", 9), b("PERF_COUNT_SW_BPF_OUTPUT", 10),
		b("PERF_COUNT_SW_CGROUP_SWITCHES", 11))}
)

func b(name string, v uint64) event.Item               { return event.Item{Name: name, Value: v} }
func in(name string, v, mask uint64) event.Item        { return event.Item{Name: name, Value: v, Mask: mask} }
func bits(name string, items ...event.Item) *event.Set { return event.Bits(name, "0", items...) }

var (
	// infinity names what is no limit (sys/resource.h).
	infinity     = event.Enum("rlim", b("RLIM64_INFINITY", 1<<64-1))
	lockTypes    = event.Enum("lock", b("F_RDLCK", 0), b("F_WRLCK", 1), b("F_UNLCK", 2))
	ownerTypes   = event.Enum("owner", b("F_OWNER_TID", 0), b("F_OWNER_PID", 1), b("F_OWNER_PGRP", 2))
	resolveFlags = bits("resolve", b("RESOLVE_NO_XDEV", 1), b("RESOLVE_NO_MAGICLINKS", 2), b("RESOLVE_NO_SYMLINKS", 4), b("RESOLVE_BENEATH", 8), b("RESOLVE_IN_ROOT", 0x10), b("RESOLVE_CACHED", 0x20))
	propagations = bits("propagation", b("MS_UNBINDABLE", 1<<17), b("MS_PRIVATE", 1<<18), b("MS_SLAVE", 1<<19), b("MS_SHARED", 1<<20))
	dedupeStates = event.Enum("dedupe", b("FILE_DEDUPE_RANGE_SAME", 0), b("FILE_DEDUPE_RANGE_DIFFERS", 1))
	contexts     = event.Enum("vsock", b("VMADDR_CID_HYPERVISOR", 0), b("VMADDR_CID_LOCAL", 1), b("VMADDR_CID_HOST", 2), b("VMADDR_CID_ANY", 0xffffffff))

	handlers    = event.Enum("sa_handler", b("SIG_DFL", 0), b("SIG_IGN", 1), b("SIG_ERR", 1<<64-1))
	actionFlags = bits("sa_flags", b("SA_RESTORER", 0x4000000), b("SA_ONSTACK", 0x8000000), b("SA_RESTART", 0x10000000), b("SA_NODEFER", 0x40000000), b("SA_RESETHAND", 0x80000000),
		b("SA_SIGINFO", 4), b("SA_NOCLDSTOP", 1), b("SA_NOCLDWAIT", 2), b("SA_UNSUPPORTED", 0x400), b("SA_EXPOSE_TAGBITS", 0x800))
	stackFlags    = bits("ss_flags", b("SS_ONSTACK", 1), b("SS_DISABLE", 2), b("SS_AUTODISARM", 1<<31))
	notifications = event.Enum("sigev_notify", b("SIGEV_SIGNAL", 0), b("SIGEV_NONE", 1), b("SIGEV_THREAD", 2), b("SIGEV_THREAD_ID", 4))
	capVersions   = event.Enum("capability_version", b("_LINUX_CAPABILITY_VERSION_1", 0x19980330), b("_LINUX_CAPABILITY_VERSION_2", 0x20071026), b("_LINUX_CAPABILITY_VERSION_3", 0x20080522))
	semFlags      = bits("sem_flg", b("SEM_UNDO", 0x1000), b("IPC_NOWAIT", 0x800))

	// c_oflag and c_cflag have fields of several bits (asm-generic/termbits.h).
	outputModes = bits("c_oflag", in("NL0", 0, 0x100), in("NL1", 0x100, 0x100), in("CR0", 0, 0x600), in("CR1", 0x200, 0x600), in("CR2", 0x400, 0x600), in("CR3", 0x600, 0x600),
		in("TAB0", 0, 0x1800), in("TAB1", 0x800, 0x1800), in("TAB2", 0x1000, 0x1800), in("TAB3", 0x1800, 0x1800), in("BS0", 0, 0x2000), in("BS1", 0x2000, 0x2000),
		in("VT0", 0, 0x4000), in("VT1", 0x4000, 0x4000), in("FF0", 0, 0x8000), in("FF1", 0x8000, 0x8000),
		b("OPOST", 1), b("OLCUC", 2), b("ONLCR", 4), b("OCRNL", 8), b("ONOCR", 0x10), b("ONLRET", 0x20), b("OFILL", 0x40), b("OFDEL", 0x80))
	controlModes = bits("c_cflag", append(baudRates(), in("CS5", 0, 0x30), in("CS6", 0x10, 0x30), in("CS7", 0x20, 0x30), in("CS8", 0x30, 0x30),
		b("CSTOPB", 0x40), b("CREAD", 0x80), b("PARENB", 0x100), b("PARODD", 0x200), b("HUPCL", 0x400), b("CLOCAL", 0x800), b("CMSPAR", 0x40000000), b("CRTSCTS", 0x80000000))...)

	breakpoints   = event.Enum("bp_type", b("HW_BREAKPOINT_EMPTY", 0), b("HW_BREAKPOINT_R", 1), b("HW_BREAKPOINT_W", 2), b("HW_BREAKPOINT_RW", 3), b("HW_BREAKPOINT_X", 4))
	filterActions = event.Enum("seccomp_ret", b("SECCOMP_RET_KILL_PROCESS", 0x80000000), b("SECCOMP_RET_KILL_THREAD", 0), b("SECCOMP_RET_TRAP", 0x30000), b("SECCOMP_RET_ERRNO", 0x50000),
		b("SECCOMP_RET_USER_NOTIF", 0x7fc00000), b("SECCOMP_RET_TRACE", 0x7ff00000), b("SECCOMP_RET_LOG", 0x7ffc0000), b("SECCOMP_RET_ALLOW", 0x7fff0000))

	sentCodes = event.Enum("si_code", b("SI_USER", 0), b("SI_KERNEL", 0x80), b("SI_QUEUE", 0xffffffff), b("SI_TIMER", 0xfffffffe), b("SI_MESGQ", 0xfffffffd), b("SI_ASYNCIO", 0xfffffffc),
		b("SI_SIGIO", 0xfffffffb), b("SI_TKILL", 0xfffffffa), b("SI_DETHREAD", 0xfffffff9), b("SI_ASYNCNL", 0xffffffc4))
	signalCodes = map[uint64]*event.Set{
		4:  event.Enum("sigill", b("ILL_ILLOPC", 1), b("ILL_ILLOPN", 2), b("ILL_ILLADR", 3), b("ILL_ILLTRP", 4), b("ILL_PRVOPC", 5), b("ILL_PRVREG", 6), b("ILL_COPROC", 7), b("ILL_BADSTK", 8)),
		5:  event.Enum("sigtrap", b("TRAP_BRKPT", 1), b("TRAP_TRACE", 2), b("TRAP_BRANCH", 3), b("TRAP_HWBKPT", 4), b("TRAP_UNK", 5), b("TRAP_PERF", 6)),
		7:  event.Enum("sigbus", b("BUS_ADRALN", 1), b("BUS_ADRERR", 2), b("BUS_OBJERR", 3), b("BUS_MCEERR_AR", 4), b("BUS_MCEERR_AO", 5)),
		8:  event.Enum("sigfpe", b("FPE_INTDIV", 1), b("FPE_INTOVF", 2), b("FPE_FLTDIV", 3), b("FPE_FLTOVF", 4), b("FPE_FLTUND", 5), b("FPE_FLTRES", 6), b("FPE_FLTINV", 7), b("FPE_FLTSUB", 8)),
		11: event.Enum("sigsegv", b("SEGV_MAPERR", 1), b("SEGV_ACCERR", 2), b("SEGV_BNDERR", 3), b("SEGV_PKUERR", 4), b("SEGV_MTEAERR", 8), b("SEGV_MTESERR", 9)),
		17: event.Enum("sigchld", b("CLD_EXITED", 1), b("CLD_KILLED", 2), b("CLD_DUMPED", 3), b("CLD_TRAPPED", 4), b("CLD_STOPPED", 5), b("CLD_CONTINUED", 6)),
		29: event.Enum("sigio", b("POLL_IN", 1), b("POLL_OUT", 2), b("POLL_MSG", 3), b("POLL_ERR", 4), b("POLL_PRI", 5), b("POLL_HUP", 6)),
		31: event.Enum("sigsys", b("SYS_SECCOMP", 1), b("SYS_USER_DISPATCH", 2)),
	}
)

// baudRates are the values of CBAUD.
func baudRates() []event.Item {
	const mask, more = 0o10017, 0o10000
	var items []event.Item
	for i, n := range [...]string{"B0", "B50", "B75", "B110", "B134", "B150", "B200", "B300", "B600", "B1200", "B1800",
		"B2400", "B4800", "B9600", "B19200", "B38400"} {
		items = append(items, in(n, uint64(i), mask))
	}
	for i, n := range [...]string{"BOTHER", "B57600", "B115200", "B230400", "B460800", "B500000", "B576000", "B921600",
		"B1000000", "B1152000", "B1500000", "B2000000", "B2500000", "B3000000", "B3500000", "B4000000"} {
		items = append(items, in(n, uint64(more|i), mask))
	}
	return items
}
