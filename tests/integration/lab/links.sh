#!/bin/bash
# Runs inside the lab: verbs work between two devices, not over a cut link, and again over a healed one.
set -u

fail() {
    echo "links: $*" >&2
    exit 1
}

# Two hundred messages between the devices of replicas 1 and 2, within so many seconds; the connection data goes over the
# loopback interface, which is never cut.
ping_pong() {
    local server tries result
    timeout 90 ibv_rc_pingpong -e -d rxe1 -g 1 -s 64 -n 200 >/dev/null 2>&1 &
    server=$!
    for ((tries = 0; tries < 600; tries++)); do
        [[ -n $(ss -Hltn 'sport = :18515') ]] && break
        sleep 0.05
    done
    timeout "$1" ibv_rc_pingpong -e -d rxe2 -g 1 -s 64 -n 200 127.0.0.1
    result=$?
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    return "$result"
}

# A TCP connection from replica 1's address to replica 2's, within so many seconds: it takes the same way as RDMA.
tcp_connects() {
    timeout 60 /usr/bin/python3 - "$1" <<'CONNECT' 2>/dev/null
import socket
import sys
server = socket.create_server(("10.9.0.2", 0))
socket.create_connection(server.getsockname(), int(sys.argv[1]), source_address=("10.9.0.1", 0))
CONNECT
}

[[ $LOCKSTEP_LAB_ADDRESSES == "10.9.0.1 10.9.0.2 10.9.0.3" ]] || fail "addresses: $LOCKSTEP_LAB_ADDRESSES"
[[ $LOCKSTEP_LAB_DEVICES == "rxe1 rxe2 rxe3" ]] || fail "devices: $LOCKSTEP_LAB_DEVICES"
ibv_devices
for device in $LOCKSTEP_LAB_DEVICES; do
    ibv_devinfo -d "$device" | grep -q PORT_ACTIVE || fail "$device has no active port"
done
[[ $(ulimit -l) == unlimited ]] || fail "memory to lock is limited"

ping_pong 60 || fail "ping-pong before the cut"
tcp_connects 30 || fail "TCP before the cut"
lab-link cut 1 2 || fail "cut"
! ping_pong 3 || fail "ping-pong over a cut link"
! tcp_connects 2 || fail "TCP over a cut link"
lab-link heal || fail "heal"
ping_pong 60 || fail "ping-pong after healing"
tcp_connects 30 || fail "TCP after healing"

lab-link cut 1 2 rdma || fail "cut rdma"
! ping_pong 3 || fail "ping-pong with RDMA cut"
tcp_connects 30 || fail "TCP with RDMA cut"
lab-link heal 1 2 || fail "heal 1 2"

lab-link down 1
ibv_devinfo -d rxe1 | grep -q PORT_DOWN || fail "the port is not down"
lab-link up 1
lab-link remove 2
! ibv_devinfo -d rxe2 >/dev/null 2>&1 || fail "the device is still there"
lab-link heal
ping_pong 60 || fail "ping-pong after the port and the device came back"

echo written >"$LOCKSTEP_LAB_OUT/kept" || fail "--out"
echo lost >lost || fail "the current folder cannot be written"
[[ $(cat lost) == lost ]] || fail "the current folder forgets"
