# machine.sh NAME BOOT DIR ADDRESS IOTAPE: records, into DIR/NAME.tape, on a machine of its
# own: with a name, a kernel's boot, processes and a directory DIR/own. It runs in name
# spaces of mounts, names and processes. DIR/shared is everybody's.
set -e
name=$1 boot=$2 dir=$3 address=$4 iotape=$5
mount --make-rprivate /
hostname "$name"
echo "$boot" > "$dir/boot.$name"
mount --bind "$dir/boot.$name" /proc/sys/kernel/random/boot_id
mkdir -p "$dir/own.$name"
mount --bind "$dir/own.$name" "$dir/own"
cd "$dir/shared"
exec "$iotape" record --backend ptrace -o "$dir/$name.tape" -- sh -c '
echo begins $1 > $2/begun
../apart $1 $4 $2 || exit
ln -s $2/log $2/link
wc -c < $2/link > $2/size
ls -l $2 > /dev/null
cd /
cat ${2#/}/begun ${3#/}/node.0 > /dev/null
cat $3/../own/begun > /dev/null
' sh "$name" "$dir/own" "$dir/shared" "$address" < /dev/null > /dev/null
