#!/bin/bash
# bfq.sh DIR   builds DIR/bfq.ko for the guest's kernel, with weights of control groups (BFQ_GROUP_IOSCHED), which
#   Debian's module lacks. It takes Debian's source of that kernel (140 MB) and two minutes.
# Needs: apt, dpkg, flex, bison, bc, make, gcc. `busybox insmod DIR/bfq.ko` in the guest loads it.
set -eu
[ $# -eq 1 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1"; out=$(cd "$1" && pwd)
release=$(cd /usr/lib/uml/modules && ls -d ./*.*)
release=${release#./}
work=$(mktemp -d /tmp/bfq.XXXXXX); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q "linux-source-${release%.*}=$release-1"
dpkg -x linux-source-*.deb .
tar xf usr/src/linux-source-*.tar.xz --exclude='*/drivers/gpu/*.[ch]'
cd linux-source-*/
linux.uml --showconfig | sed 's/# CONFIG_BFQ_GROUP_IOSCHED is not set/CONFIG_BFQ_GROUP_IOSCHED=y/' > .config
make -s ARCH=um olddefconfig
make -s ARCH=um modules_prepare
mkdir "$work/bfq"
cp block/bfq*.c block/*.h "$work/bfq"
printf 'obj-m := bfq.o\nbfq-y := bfq-iosched.o bfq-wf2q.o bfq-cgroup.o\n' > "$work/bfq/Makefile"
# The kernel's symbols are not known here; it has no versions of them that would have to be.
make -s ARCH=um M="$work/bfq" KBUILD_MODPOST_WARN=1 modules
cp "$work/bfq/bfq.ko" "$out/bfq.ko"
