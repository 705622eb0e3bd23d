# The lab's virtual machine: its command line, start, streams and end. Sourced by tools/rdma-lab, whose options, `say`,
# `fail`, scratch (a temporary folder with the job), image and accelerator it uses.

# In QEMU's options a comma within a value is doubled.
comma_safe() { printf '%s' "${1//,/,,}"; }

qemu_arguments() {
    # maxcpus: emulated processors wait for each other a lot while the kernel starts; with one it takes a third less.
    # no_timer_check: on a busy host the kernel's test of its timer fails, and it panics.
    local run kernel_options="console=ttyS0 quiet panic=-1 oops=panic mitigations=off maxcpus=1 no_timer_check"
    run=$(comma_safe "$scratch")
    arguments=(-M q35 -m "$memory_mib" -smp "$cpus" -nodefaults -display none -nic none -no-reboot -cpu max)
    if [[ $accelerator == kvm ]]; then
        arguments+=(-accel kvm)
    else
        # A clock read costs a sixth with the TSC, which is steady in an emulated machine.
        arguments+=(-accel "tcg,thread=multi")
        kernel_options+=" tsc=reliable clocksource=tsc"
    fi
    arguments+=(-kernel "$image/vmlinux" -initrd "$image/initramfs" -append "$kernel_options")
    arguments+=(-chardev "file,id=console,path=$run/console" -serial chardev:console)
    # Without ioeventfd a write of the guest has reached the file when it returns: nothing is lost at the end.
    arguments+=(-device "virtio-serial-pci,ioeventfd=off")
    if ((terminal)); then
        arguments+=(-chardev "stdio,id=stdin,signal=off" -device "virtconsole,chardev=stdin")
    else
        arguments+=(-chardev "stdio,id=stdin" -device "virtserialport,chardev=stdin,name=stdin")
    fi
    local stream
    for stream in stdout stderr status; do
        arguments+=(-chardev "file,id=$stream,path=$run/$stream")
        arguments+=(-device "virtserialport,chardev=$stream,name=$stream")
    done
    arguments+=(-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap")
    arguments+=(-virtfs "local,path=$run/job,mount_tag=job,security_model=none,readonly=on,multidevs=remap")
    [[ -z $out ]] ||
        arguments+=(-virtfs "local,path=$(comma_safe "$out"),mount_tag=out,security_model=none,multidevs=remap")
}

# Prints what comes until the machine has ended; ends it where nobody reads on (`| head`).
print_stream() {
    tail -c +1 -s 0.05 -f --pid="$machine" "$1" 2>/dev/null && return
    kill "$machine" 2>/dev/null
    return 1
}

start_machine() {
    printers=()
    mkfifo "$scratch/status"
    touch "$scratch/stdout" "$scratch/stderr"
    # A child of `timeout`, and told to end with this script: it cannot outlive either.
    local start=(setpriv --pdeathsig TERM timeout --foreground -k 5 "$timeout_seconds" qemu-system-x86_64)
    if ((terminal)); then
        terminal_settings=$(stty -g)
        "${start[@]}" "${arguments[@]}" <&0 2>"$scratch/qemu.log" 8>"$scratch/status" &
        machine=$!
    else
        mkfifo "$scratch/stdin"
        # Not QEMU itself on our input: it would make a terminal raw, and the open file non-blocking for others.
        cat <&0 >"$scratch/stdin" 2>/dev/null &
        feeder=$!
        "${start[@]}" "${arguments[@]}" <"$scratch/stdin" >"$scratch/qemu.log" 2>&1 8>"$scratch/status" &
        machine=$!
        print_stream "$scratch/stdout" &
        printers+=($!)
        print_stream "$scratch/stderr" >&2 &
        printers+=($!)
    fi
}

# Reads what lab/guest reports until the machine has ended; sets result where there is one.
follow_machine() {
    local started=$1 word rest printer
    while read -r word rest <&9; do
        case $word in
        ready)
            ((verbose)) && say "ready after $(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $started }") s" \
                "($accelerator, $cpus processors, $layout layout, $(basename "$image" | cut -d_ -f1))"
            ;;
        exit) result=$rest ;;
        fail) reason=$rest ;;
        esac
    done
    wait "$machine"
    machine_status=$?
    machine=""
    for printer in "${printers[@]}"; do wait "$printer" || result=141; done
    printers=()
}

explain_failure() {
    local last_words="$scratch/last_words"
    if ((machine_status == 124 || machine_status == 137)); then
        say "the time limit of $timeout_seconds s is over (--timeout SECONDS sets another)"
        exit 124
    fi
    [[ -z ${reason:-} ]] || fail "$reason"
    if [[ -s $scratch/qemu.log ]]; then fail "QEMU ended with status $machine_status: $(tail -n 3 "$scratch/qemu.log")"; fi
    tr -d '\r' <"$scratch/console" >"$last_words"
    if grep -q 'Kernel panic' "$last_words"; then
        fail "the lab's kernel panicked; its last words:"$'\n'"$(sed -n '/BUG:\|Oops:\|Kernel panic/,$p' "$last_words" | head -n 20)"
    fi
    fail "the lab ended (QEMU status $machine_status) before the command did; its last words:"$'\n'"$(tail -n 10 "$last_words")"
}
