# The lab's kernel and first file system, kept in a cache folder. Sourced by tools/rdma-lab, which defines `say`, `fail`,
# `need` and lab_folder. Nothing is installed: Debian's kernel package is fetched by apt and unpacked.

cache_folder=${LOCKSTEP_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockstep-lab}

# crc32_generic: soft-RoCE fails without it. The last line is for lab-link.
kernel_modules=(
    virtio_pci virtio_console 9pnet_virtio 9p overlay
    crc32_generic rdma_rxe ib_uverbs rdma_ucm veth
    bridge sch_netem nf_tables nft_meta_bridge
)

# Prints the name of the newest kernel package in the cache, without ".deb".
cached_package() {
    find "$cache_folder" -maxdepth 1 -name 'linux-image-*.deb' -printf '%f\n' 2>/dev/null | sort -V | tail -n 1 |
        sed 's/\.deb$//'
}

# Fetches the release's current kernel package, unless the cache has it.
fetch_kernel() {
    local package_file=${LOCKSTEP_LAB_KERNEL_DEB:-} package
    if [[ -z $package_file ]]; then
        need apt-get apt
        package=$(apt-cache depends linux-image-amd64 2>/dev/null |
            sed -n 's/.*Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
        [[ -n $package ]] ||
            fail "apt knows no linux-image-amd64: run 'apt-get update' as root, or name a kernel package" \
                "(linux-image-*-amd64_*.deb of Debian) in LOCKSTEP_LAB_KERNEL_DEB"
        [[ -z $(find "$cache_folder" -maxdepth 1 -name "${package}_*.deb") ]] || return 0
        say "fetching Debian's kernel ($package, about 70 MB)"
        mkdir -p "$scratch/fetch"
        (cd "$scratch/fetch" && timeout 600 apt-get -q download "$package") >"$scratch/apt.log" 2>&1 ||
            fail "apt cannot fetch $package:" "$(tail -n 3 "$scratch/apt.log")"
        package_file=$(find "$scratch/fetch" -name '*.deb')
    fi
    dpkg-deb --info "$package_file" >/dev/null || fail "$package_file is not a Debian package"
    find "$cache_folder" -maxdepth 1 -name 'linux-image-*.deb' -delete
    cp "$package_file" "$scratch/kernel.deb"
    mv "$scratch/kernel.deb" "$cache_folder/$(basename "$package_file")"
}

# Prints a little-endian number of BYTES bytes at OFFSET of FILE.
number_at() { od -An -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '; }

# The kernel unpacked from its self-extracting image: emulated unpacking takes longer than all the rest of the start.
# Falls back to the image as it is.
extract_kernel() {
    local image=$1 target=$2 start size
    start=$(((($(number_at "$image" 497 1)) + 1) * 512 + $(number_at "$image" 584 4)))
    size=$(number_at "$image" 588 4)
    tail -c "+$((start + 1))" "$image" | head -c "$((size - 4))" >"$scratch/payload"
    for unpacker in "xz -dc" "zstd -dc" "gzip -dc" "lz4 -dc"; do
        $unpacker <"$scratch/payload" >"$target" 2>/dev/null && [[ $(head -c 4 "$target") == $'\x7fELF' ]] && return
    done
    cp "$image" "$target"
}

# Cuts the signature off a kernel module: the lab's kernel does not insist on it, and checking it takes long there.
drop_signature() {
    local module=$1 size
    [[ $(tail -c 28 "$module" | tr -d '\0') == "~Module signature appended~" ]] || return 0
    size=$(tail -c 32 "$module" | head -c 4 | od -An -t u4 --endian=big | tr -d ' ')
    truncate -s "-$((28 + 12 + size))" "$module"
}

# Unpacks PACKAGE and makes the file system that the kernel starts from: busybox, the modules and lab/init.
build_image() {
    local package=$1 target=$2 tree=$scratch/tree root=$scratch/root version module
    need cpio cpio
    need depmod kmod
    need xz xz-utils
    if [[ ! -x /bin/busybox ]] || ldd /bin/busybox >/dev/null 2>&1; then
        fail "busybox-static is missing: $(install_hint busybox-static)"
    fi
    say "unpacking $package"
    mkdir -p "$tree" "$root"/{bin,dev,proc,sys,modules}
    dpkg-deb --fsys-tarfile "$cache_folder/$package.deb" | tar -x -C "$tree" ./boot ./lib/modules
    version=$(basename "$tree"/lib/modules/*)
    depmod -b "$tree" "$version" 2>"$scratch/depmod.log" || fail "depmod: $(tail -n 1 "$scratch/depmod.log")"
    say "making the file system that the kernel starts from"
    # One list in load order, each module once.
    for module in "${kernel_modules[@]}"; do
        modprobe -d "$tree" -S "$version" --show-depends "$module" ||
            fail "kernel $version has no module $module"
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$scratch/modules" || exit
    while read -r module; do
        cp "$module" "$root/modules/"
        drop_signature "$root/modules/$(basename "$module")"
        basename "$module"
    done <"$scratch/modules" >"$root/modules/order"
    cp /bin/busybox "$root/bin/"
    cp "$lab_folder/init" "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$scratch/initramfs"
    extract_kernel "$tree"/boot/vmlinuz-* "$scratch/vmlinux"
    mkdir -p "$target.new"
    mv "$scratch/vmlinux" "$scratch/initramfs" "$target.new/"
    rm -rf "$target"
    mv "$target.new" "$target"
    # Images of other versions of these scripts: keep a few, other checkouts may use them.
    find "$cache_folder" -maxdepth 1 -name 'image-*' -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- |
        while read -r module; do rm -rf "$module"; done
}

# Sets `image` to the folder with vmlinux and initramfs; fails if it is not there yet.
find_image() {
    local package hash
    package=$(cached_package)
    hash=$(cat "$lab_folder/init" "$lab_folder/cache.sh" | sha256sum | cut -c1-12)
    image=$cache_folder/image-$package-$hash
    [[ -n $package && -f $image/vmlinux && -f $image/initramfs ]]
}

# Sets `image`, made if need be. With "newest", looks for a newer kernel first; goes on with what there is if it can't.
prepare_image() {
    local wanted=${1:-}
    if [[ $wanted != newest ]] && find_image; then return; fi
    mkdir -p "$cache_folder" || fail "cannot make the cache folder $cache_folder; LOCKSTEP_LAB_CACHE names another"
    exec 7>"$cache_folder/lock" || fail "cannot write to the cache folder $cache_folder"
    flock -w 900 7 || fail "another rdma-lab has held $cache_folder/lock for 15 minutes"
    if [[ $wanted == newest || -z $(cached_package) ]]; then
        (fetch_kernel) || [[ -n $(cached_package) ]] || exit 125
    fi
    find_image || build_image "$(cached_package)" "$image"
    exec 7>&-
}

# Sets `accelerator`: kvm where a trial boot has shown that it works, else tcg. A KVM device can be there and not work
# (nested virtual machines), so the verdict of the trial is kept, for this kernel and processor.
choose_accelerator() {
    local key verdict_file=$cache_folder/kvm-verdict
    accelerator=tcg
    [[ -r /dev/kvm && -w /dev/kvm ]] && grep -qwE 'vmx|svm' /proc/cpuinfo || return 0
    key="$(uname -rv) $(grep -m1 'model name' /proc/cpuinfo) $(qemu-system-x86_64 --version | head -n 1)"
    if [[ ! -f $verdict_file || $(head -n 1 "$verdict_file") != "$key" ]]; then
        say "trying whether KVM works here"
        timeout -k 1 10 qemu-system-x86_64 -accel kvm -cpu max -m 512 -nodefaults -display none -serial stdio \
            -no-reboot -kernel "$image/vmlinux" -initrd "$image/initramfs" \
            -append "console=ttyS0 quiet panic=-1 lab.probe" </dev/null >"$scratch/probe.log" 2>&1 || true
        printf '%s\n' "$key" "$(grep -q 'lab init: alive' "$scratch/probe.log" && echo kvm || echo tcg)" \
            >"$scratch/verdict"
        accelerator=$(tail -n 1 "$scratch/verdict")
        mv "$scratch/verdict" "$verdict_file" 2>/dev/null || true
    else
        accelerator=$(tail -n 1 "$verdict_file")
    fi
}
