#!/bin/sh
# races.sh PROGRAM: runs a program that was built with ThreadSanitizer. ThreadSanitizer's address mapping fails on
# kernels with too much address space randomisation; `setarch -R` disables it. Exit code 77: ThreadSanitizer gets no
# address space at all, for example under `ulimit -v`.
for launcher in "" "setarch -R"; do
    if $launcher "$1" --count > /dev/null 2>&1; then
        exec $launcher "$1"
    fi
done
"$1" --count
exit 77
