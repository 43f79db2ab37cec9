// SPDX-License-Identifier: Apache-2.0

package event

// Layout names a kernel structure, for KindStruct. Numbers are not part of a
// format.
type Layout uint8

// The layouts that the operation table uses.
const (
	LayoutNone Layout = iota
	LayoutStat
	LayoutStatx
	LayoutStatfs
	LayoutTimespec
	LayoutTimespec2 // struct timespec[2] (utimensat)
	LayoutTimeval2  // struct timeval[2] (utimes)
	LayoutUtimbuf
	LayoutFlock
	LayoutOpenHow
	LayoutFDPair // int[2]
	LayoutOffset // loff_t
	LayoutCloneArgs
	LayoutRlimit
	LayoutTimeval
	LayoutItimerspec
	LayoutItimerval
	LayoutPollfd     // elements of an array
	LayoutEpollEvent // elements of an array
	LayoutFDSet      // bit map of descriptors; its length varies
	LayoutSigset     // the kernel's sigset_t
	LayoutSiginfo
	LayoutRusage
	LayoutUtsname // struct new_utsname
	LayoutSysinfo
	LayoutMsghdr
	LayoutMmsghdr  // elements of an array
	LayoutCmsgs    // control messages; their length varies
	LayoutSockaddr // its length varies
	LayoutIocb
	LayoutIoEvent // elements of an array
	LayoutUringParams
	LayoutFileHandle  // the head; the handle follows
	LayoutCloneRange  // FICLONERANGE
	LayoutDedupeRange // FIDEDUPERANGE, the head; 32 bytes for each destination follow
	LayoutFiemap      // the head; 56 bytes for each extent follow
	LayoutFsxattr     // FS_IOC_FSGETXATTR
	LayoutFstrim      // FITRIM
	LayoutWinsize
	LayoutTermios   // the kernel's struct termios
	LayoutIoctl     // what the request says
	LayoutDirents   // struct linux_dirent, one after the other
	LayoutDirents64 // struct linux_dirent64, one after the other
	LayoutNames     // strings with their NULs, one after the other (listxattr)
	LayoutTms
	LayoutSchedParam
	LayoutCPUSet // bit map of CPUs; its length varies
	LayoutCapHeader
	LayoutCapData
	LayoutIDs // elements of an array: user or group ids
	LayoutU32
	LayoutU64
	LayoutWaitStatus
	LayoutIovec     // elements of an array
	LayoutSigaction // the kernel's struct sigaction
	LayoutStack     // stack_t
	LayoutSigevent
	LayoutTimex
	LayoutTimezone
	LayoutSchedAttr
	LayoutMqAttr
	LayoutXattrArgs  // setxattrat, getxattrat
	LayoutFutexWaitv // elements of an array
	LayoutSembuf     // elements of an array
	LayoutSockopt    // value of a socket option; its length varies
	LayoutOwner      // struct f_owner_ex
	LayoutFprog      // struct sock_fprog
	LayoutSigsetRef  // pointer to a signal set and its size (pselect6)
	LayoutFileAttr   // file_getattr
	LayoutMountAttr  // mount_setattr
	LayoutSlots      // u32 first slot, u32 slots, then the descriptors (int) as far as they are known
)

// layoutBytes is the size of each layout on amd64 and arm64; 0 where it varies.
var layoutBytes = [...][numArch]uint16{
	LayoutStat:        {144, 128},
	LayoutStatx:       {256, 256},
	LayoutStatfs:      {120, 120},
	LayoutTimespec:    {16, 16},
	LayoutTimespec2:   {32, 32},
	LayoutTimeval2:    {32, 32},
	LayoutUtimbuf:     {16, 16},
	LayoutFlock:       {32, 32},
	LayoutOpenHow:     {24, 24},
	LayoutFDPair:      {8, 8},
	LayoutOffset:      {8, 8},
	LayoutCloneArgs:   {88, 88},
	LayoutRlimit:      {16, 16},
	LayoutTimeval:     {16, 16},
	LayoutItimerspec:  {32, 32},
	LayoutItimerval:   {32, 32},
	LayoutPollfd:      {8, 8},
	LayoutEpollEvent:  {12, 16},
	LayoutFDSet:       {0, 0},
	LayoutSigset:      {8, 8},
	LayoutSiginfo:     {128, 128},
	LayoutRusage:      {144, 144},
	LayoutUtsname:     {390, 390},
	LayoutSysinfo:     {112, 112},
	LayoutMsghdr:      {56, 56},
	LayoutMmsghdr:     {64, 64},
	LayoutCmsgs:       {0, 0},
	LayoutSockaddr:    {0, 0},
	LayoutIocb:        {64, 64},
	LayoutIoEvent:     {32, 32},
	LayoutUringParams: {120, 120},
	LayoutFileHandle:  {8, 8},
	LayoutCloneRange:  {32, 32},
	LayoutDedupeRange: {24, 24},
	LayoutFiemap:      {32, 32},
	LayoutFsxattr:     {28, 28},
	LayoutFstrim:      {24, 24},
	LayoutWinsize:     {8, 8},
	LayoutTermios:     {36, 36},
	LayoutIoctl:       {0, 0},
	LayoutDirents:     {0, 0},
	LayoutDirents64:   {0, 0},
	LayoutNames:       {0, 0},
	LayoutTms:         {32, 32},
	LayoutSchedParam:  {4, 4},
	LayoutCPUSet:      {0, 0},
	LayoutCapHeader:   {8, 8},
	LayoutCapData:     {24, 24},
	LayoutIDs:         {4, 4},
	LayoutU32:         {4, 4},
	LayoutU64:         {8, 8},
	LayoutWaitStatus:  {4, 4},
	LayoutIovec:       {16, 16},
	LayoutSigaction:   {32, 32},
	LayoutStack:       {24, 24},
	LayoutSigevent:    {64, 64},
	LayoutTimex:       {208, 208},
	LayoutTimezone:    {8, 8},
	LayoutSchedAttr:   {48, 48},
	LayoutMqAttr:      {64, 64},
	LayoutXattrArgs:   {16, 16},
	LayoutFutexWaitv:  {24, 24},
	LayoutSembuf:      {6, 6},
	LayoutSockopt:     {0, 0},
	LayoutOwner:       {8, 8},
	LayoutFprog:       {16, 16},
	LayoutSigsetRef:   {16, 16},
	LayoutFileAttr:    {24, 24},
	LayoutMountAttr:   {32, 32},
	LayoutSlots:       {0, 0},
}

// Bytes returns the size of the structure on an architecture: of one element,
// where an argument has an array of them; 0 where the size varies.
func (l Layout) Bytes(a Arch) int {
	if int(l) >= len(layoutBytes) || a >= numArch {
		return 0
	}
	return int(layoutBytes[l][a])
}
