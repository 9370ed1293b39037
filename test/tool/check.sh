#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The granary command on good and bad input: its words and its exit status.   check.sh BINARY JOBS
set -uo pipefail

tool=$PWD/$1
jobs=$PWD/$2
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset GRANARY_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF GRANARY_NO_CACHING PYTORCH_NO_CUDA_MEMORY_CACHING
passed=0 failed=0

# expect STATUS PATTERN ARGUMENT...: the exit status, and a line of either output that matches.
expect() {
    local status=$1 pattern=$2 rc
    shift 2
    "$tool" "$@" >out 2>err </dev/null
    rc=$?
    if [ $rc -ne "$status" ] || ! grep -qE -e "$pattern" out err; then
        echo "tool: granary $*: status $rc, not $status, or no line like: $pattern" >&2
        head -c 400 out err >&2
        failed=$((failed + 1))
    elif [ "$status" = 2 ] && [ "$(wc -l <err)" != 1 ]; then
        echo "tool: granary $*: $(wc -l <err) lines on standard error, not 1" >&2
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

# refuse TEXT PATTERN: the text is no trace.
refuse() {
    printf "$1" >bad.trace
    expect 2 "^granary replay: $2" replay --driver sim bad.trace
}

printf '# granary trace 1: small\na 0 1048576 0\na 7 33554432 1\nr 7\nf 0\n\na 8 512 0\nf 7\n' >good.trace
printf 'a 0 1000000 0\na 1 52428800 0\na 2 52428800 0\nf 1\n' >big.trace

expect 0 '^max_split_size_mb +128 +string +classic' options --conf max_split_size_mb:128
expect 0 'max_split_size_mb has no effect beside expandable_segments' options --conf max_split_size_mb:128
expect 0 '^expandable_segments +True +default ' options
expect 0 '"key":"reclaim","value":"off","origin":"string","default":"pressure","values":"off\|pressure\|eager"' options --json --conf reclaim:off
expect 0 '^\{"warning":"reclaim is off' options --json --conf reclaim:off
expect 0 'skipped: future_key' options --lenient --conf future_key:3
expect 0 '^backend +native +string ' options --lenient --conf backend:cudaMallocAsync
expect 2 "--conf: column 1: 'future_key' is no option" options --conf future_key:3
expect 2 "column 9: 'cudaMallocAsync'" options --conf backend:cudaMallocAsync
expect 2 '--conf: its value is missing' options --conf
expect 2 'takes no file: here' options here
expect 2 'there is no option.*--fast' options --fast
export PYTORCH_ALLOC_CONF=extent_mb:40,other:1 GRANARY_NO_CACHING=1
expect 0 '^extent_mb +40 +PYTORCH_ALLOC_CONF ' options
expect 0 '^no_caching +True +GRANARY_NO_CACHING ' options
unset GRANARY_NO_CACHING
export PYTORCH_CUDA_ALLOC_CONF=reclaim:
expect 2 "^granary options: PYTORCH_CUDA_ALLOC_CONF: column 1: 'reclaim:' has no value" options
unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF

expect 0 '^granary [0-9]+\.[0-9]+\.[0-9]+$' --version
for verb in explain report summary replay options; do
    expect 0 "^  granary $verb .* [a-z]" --help
    expect 0 "^granary $verb " "$verb" --help
    expect 0 "^granary $verb " help "$verb"
    "$tool" "$verb" --help >help && awk 'length > 100 {bad = 1} END {exit bad || NR < 5}' help && passed=$((passed + 1)) ||
        { echo "tool: the help on $verb has lines of more than 100 columns" >&2; failed=$((failed + 1)); }
done
expect 2 'a verb is missing'
expect 2 'no verb "mill"; there are: explain report ' mill
expect 2 'no verb "mill"' help mill
expect 2 'no option "--fast"; see granary summary --help$' summary --fast

expect 0 '^good +6 ' replay --driver sim good.trace
expect 0 '^sim: granary simulated device; default settings$' replay --driver sim good.trace
expect 0 '^sim: granary simulated device, 80.0 MiB$' replay --driver sim --memory 80MiB --conf '' --conf reclaim:off good.trace
expect 0 '^good +reclaim:off +6 ' replay --driver sim --conf '' --conf reclaim:off good.trace
expect 0 '"ops":6,"allocs":3,"oom_at":null,' replay --driver sim --json good.trace
expect 0 '"peak_active_bytes":34603008,' replay --driver sim --json good.trace
expect 0 'expandable_segments:False.*"mem_alloc":2,' replay --driver sim --json --conf expandable_segments:False good.trace
expect 1 '"oom_at":2,"oom_status":"GRANARY_' replay --driver sim --json --memory 80MiB big.trace
expect 1 'at op 2$' replay --driver sim --memory 80MiB big.trace
expect 1 '^  big +\(default\) +op 2: 50.00 MiB .* the device is full: ' replay --driver sim --memory 80MiB big.trace
expect 0 '^  max_split_size_mb:128: max_split_size_mb has no effect beside expandable_segments' \
    replay --driver sim --conf reclaim:eager --conf max_split_size_mb:128 good.trace
expect 0 '^sim: .*; reclaim:eager$' replay --driver sim --conf reclaim:eager good.trace
! grep -q warnings out && passed=$((passed + 1)) || { echo "tool: a warning of nothing" >&2; failed=$((failed + 1)); }
expect 0 'oom_at":null' replay --driver sim --json --memory 160MiB big.trace
expect 1 'at op 0$' replay --driver sim --memory 4KiB big.trace
expect 2 'does not open' replay --driver cuda good.trace

gzip -k good.trace
expect 0 '^good ' replay --driver sim good.trace.gz
head -c $(($(wc -c <good.trace.gz) - 9)) good.trace.gz >cut.trace.gz
expect 2 'cut\.trace\.gz: truncated' replay --driver sim cut.trace.gz
{ head -c 5000 "$root/bench/traces/moe.trace.gz"; head -c 5000 /dev/zero; } >hurt.trace.gz
expect 2 'hurt\.trace\.gz: (damaged|truncated)' replay --driver sim hurt.trace.gz
expect 2 'no-such-file: No such file' replay --driver sim no-such-file
expect 2 'Is a directory' replay --driver sim .
"$tool" replay --driver sim - <good.trace >out 2>err && grep -q '^- ' out && passed=$((passed + 1)) ||
    { echo "tool: standard input is not replayed" >&2; failed=$((failed + 1)); }
"$tool" replay --driver sim good.trace >/dev/full 2>err
[ $? = 2 ] && passed=$((passed + 1)) || { echo "tool: a full disk is not noticed" >&2; failed=$((failed + 1)); }

# Of several tables each is named.
"$tool" summary good.trace big.trace >out
[ "$(grep -c '^[a-z]*\.trace:$' out)" = 2 ] && [ "$(head -n 1 out)" = good.trace: ] && passed=$((passed + 1)) ||
    { echo "tool: which table is of which file is not said" >&2; failed=$((failed + 1)); }

# Nothing that is opened takes the place of a stream that is closed.
"$tool" replay --driver sim --json --series curve good.trace >&- 2>err
[ $? = 2 ] && ! grep -q trace\" curve && passed=$((passed + 1)) ||
    { echo "tool: the table is written into the series" >&2; failed=$((failed + 1)); }

refuse '' 'bad\.trace: it is empty$'
refuse '# nothing\n\n' 'bad\.trace: there is no operation'
refuse '\001\002\003' 'bad\.trace:1:1: this is neither a snapshot nor a trace'
refuse '\200\002}q' 'bad\.trace: byte 3: BINPUT needs 1 bytes and the file has 0 more'
refuse 'PK\003\004' 'bad\.trace:1:1: this is neither a snapshot nor a trace: "PK" is none'
refuse 'a 1 512\n' 'bad\.trace:1:8: the stream.s number is missing'
refuse 'a 1 5x2 0\n' 'bad\.trace:1:6: the size must be a whole number'
refuse 'a 1 -5 0\n' 'bad\.trace:1:5: the size must be a whole number'
refuse 'a 1 18446744073709551616 0\n' 'bad\.trace:1:5: the size does not fit'
refuse 'a 1 512 0 9\n' 'bad\.trace:1:11: the line goes on'
refuse 'a 1 512 0\na 1 512 0\n' 'bad\.trace:2:3: block 1 was allocated before, in line 1'
refuse 'a 1 512 0\nf 2\n' 'bad\.trace:2:3: block 2 is freed and was never allocated'
refuse 'a 1 512 0\nf 1\nf 1\n' 'bad\.trace:3:3: block 1 was freed before, in line 2'
refuse 'a 1 512 0\n\n  zap 1\n' 'bad\.trace:3:3: unknown operation "zap"'
refuse '# granary trace 9: x\na 1 512 0\n' 'bad\.trace:1:17: the version'

expect 2 'a file to replay is missing' replay
expect 2 'no option "--fast"' replay --fast good.trace
expect 2 '--memory: its value is missing' replay --memory
expect 2 '--memory: "lots" is not a size' replay --memory lots good.trace
expect 2 '--repeat: "-1"' replay --repeat -1 good.trace
expect 2 '--driver: there is no "abacus"' replay --driver abacus good.trace
expect 2 'granary_mode' replay --driver sim --conf granary_mode:3 good.trace
expect 2 '--series: ' replay --driver sim --series /no/such/place good.trace

expect 0 '^good ' replay --driver sim --series curve good.trace
[ "$(sed -n 2p curve)" = op,active,reserved ] && [ "$(tail -n +3 curve | wc -l)" = 6 ] && passed=$((passed + 1)) ||
    { echo "tool: the series is not as described" >&2; cat curve >&2; failed=$((failed + 1)); }

# ---- snapshots -------------------------------------------------------------------------------------

golden=$root/test/golden
fragmented=$golden/oom_fragmentation.pickle.gz
leaking=$golden/oom_leak.pickle.gz
expect 0 'nothing wrong$' explain "$golden/gpt_varlen.pickle.gz"
expect 0 'nothing wrong$' explain "$golden/prefetch.pickle.gz"
expect 0 'nothing wrong$' explain "$root/bench/traces/prefetch.trace.gz"
expect 1 ': fragmentation: 641.2 MiB are free where 1.50 GiB were asked for, in pieces of at most 89.6 MiB$' \
    explain "$fragmented"
expect 1 'failed +1.50 GiB at train/oomjobs.py:12 \(step\)' explain "$fragmented"
expect 1 'pinned by .* train/oomjobs.py:12 \(step\), in activations.py:66' explain "$fragmented"
expect 1 'expandable_segments:False \(the job.s\) .* fails$' explain --memory 10.6GiB "$fragmented"
expect 1 'expandable_segments:True +[0-9].* fits$' explain --memory 10.6GiB "$fragmented"
expect 1 'advice +set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; the same traffic fits on a card of 10.25 GiB$' \
    explain "$fragmented"
# Whether a job that did not fail would fit somewhere else.
moe=$root/bench/traces/moe.trace.gz
expect 0 'nothing wrong, but it does not fit on a card of 12.00 GiB$' explain --memory 12GiB "$moe"
expect 0 'advice +use less' explain --memory 12GiB "$moe"
expect 0 'moe.trace.gz: nothing wrong$' explain --memory 13.2GiB "$moe"
expect 0 'nothing wrong, but it does not fit on a card of 20.20 GiB$' explain --memory 20.2GiB "$golden/gpt_varlen.pickle.gz"
expect 0 'advice +set GRANARY_CONF=expandable_segments:True,extent_mb:2; ' explain --memory 20.2GiB "$golden/gpt_varlen.pickle.gz"
expect 0 'PyTorch itself has no such setting$' explain --memory 20.2GiB "$golden/gpt_varlen.pickle.gz"
expect 1 ': peak: ' explain --memory 10162MiB "$fragmented"
# Whether a job that failed would fit a larger card.
expect 1 'card +80.00 GiB, as --memory says$' explain --memory 80GiB "$fragmented"
expect 1 '^ +the process had 10.86 GiB at most where it failed$' explain --memory 80GiB "$fragmented"
expect 1 '"had_bytes":1166[0-9]*,"bytes":85899345920' explain --json --memory 80GiB "$fragmented"
expect 1 'advice +nothing has to be set on this card' explain --memory 80GiB "$fragmented"
expect 1 ': leak: what is allocated at train/oomjobs.py:12 \(step\), in modeling_gpt2.py:307 \(forward\) only grows$' \
    explain "$leaking"
expect 1 'grows +156.0 MiB in 13 blocks in 1.0[0-9] s' explain "$leaking"
expect 1 'without what grows\) .* fits$' explain "$leaking"
expect 1 '"kind":"leak","out_of_memory":true,"out_of_memory_before":false,"entry":58151,' explain --json "$leaking"
expect 1 'at op 14153$' replay --driver sim --memory 10500MiB --conf expandable_segments:False "$fragmented"
expect 0 '^oom_fragmentation .* 14154 ' replay --driver sim --memory 10.6GiB "$fragmented"

# hurt FORMAT PATTERN: the bytes are no snapshot.
hurt() {
    printf "$1" >bad.pickle
    expect 2 "^granary explain: bad\\.pickle: $2" explain bad.pickle
}
hurt '\200\004cos\nsystem\n(S"id"\ntR.' 'byte 2: the opcode GLOBAL could run code; only plain data is read$'
hurt 'cos\nsystem\n(S"id"\ntR.' 'byte 0: the opcode GLOBAL could run code; only plain data is read$'
hurt '(S"id"\nios\nsystem\n.' 'byte [0-9]*: the opcode INST could run code; only plain data is read$'
hurt ' \n{"segments":[]}' 'the snapshot is empty'
hurt '\200\002}q' 'byte 3: BINPUT needs 1 bytes and the file has 0 more'
hurt '}.' 'this is plain data but no snapshot'
hurt '{"segments":[]}' 'the snapshot is empty'
hurt '{"segments":[' 'byte 13: the text ends where a value must stand'
expect 2 'a file to explain is missing' explain
expect 2 'no option "--loud"' explain --loud x
expect 2 '--memory: "much" is not a size' explain --memory much x
expect 2 'no-such-file: No such file' explain no-such-file

# snapshot BLOCKS POOL ENTRIES...: job.json, of a classic segment of 100 MiB at 4096 and of a history.
snapshot() {
    local blocks=$1 pool=$2
    shift 2
    printf '{"segments":[{"device":0,"address":4096,"total_size":104857600,"segment_type":"large","stream":0,"segment_pool_id":%s,"blocks":[%s]}],"device_traces":[[%s]]}' \
        "$pool" "$blocks" "$(IFS=,; echo "$*")" >job.json
}
# entry ACTION ADDRESS SIZE [MORE]
entry() { printf '{"action":"%s","addr":%s,"size":%s,"stream":0,"time_us":1%s}' "$1" "$2" "$3" "${4-}"; }
full='{"size":104857600,"state":"active_allocated"}'
half='{"size":52428800,"state":"active_allocated"},{"size":52428800,"state":"inactive"}'
all=$(entry alloc 4096 104857600)

# A small request needs a whole segment; what is live and it may still be less than the card.
snapshot "$full" '[0,0]' "$all" "$(entry oom 0 512 ',"device_free":524288')"
expect 1 'peak: all that is reserved is in use, and the card has no room for another segment$' explain job.json
expect 1 'nothing wrong that could be seen$' explain --memory 1GiB job.json
snapshot "$full" '[0,0]' "$all" "$(entry oom 0 512 ',"device_free":1099511627776')"
expect 1 'peak: all that is reserved is in use' explain job.json
# Sizes that no card has are mistakes of the job, not of the snapshot.
snapshot "$full" '[0,0]' "$all" "$(entry oom 0 17592186044416 ',"device_free":1048576')"
expect 1 'peak: what is live and the request are 16384.10 GiB' explain job.json
expect 1 'most of it is the request$' explain job.json
expect 0 '"kind":"peak","failed":true' report job.json
# A line that is not known is left out.
snapshot "$full" '[0,0]' "$all" "$(entry oom 0 512 ',"device_free":0,"frames":[{"name":"+0x12","filename":"/lib/libc.so","line":0},{"name":"main","filename":"job","line":0}]')"
expect 1 'failed +512 B at job \(main\), in libc.so \(\+0x12\)$' explain job.json
# Where a private pool asked, its own memory is what counts.
snapshot "$half" '[0,1]' "$(entry alloc 4096 52428800 ',"pool_id":[0,1]')" \
    "$(entry oom 0 104857600 ',"device_free":1048576,"pool_id":[0,1]')"
expect 1 'peak: ' explain job.json
expect 1 '"free_bytes":52428800,.*"free_other_class_bytes":0,' explain --json job.json
# A history without free_completed: the next block at an address ends the one before.
snapshot "$full" '[0,0]' "$all" "$(entry free_requested 4096 104857600)" "$all" \
    "$(entry free_requested 4096 104857600)" "$all"
expect 0 '^\| Active memory +\| 102400 KiB \| 102400 KiB \| 307200 KiB \| 204800 KiB \|' summary job.json
expect 0 'the fullest moment: entry 1 of 5' explain job.json
# Of two devices the one that failed is replayed, as it is reported.
printf '{"segments":[],"device_traces":[[%s],[%s]]}' "$all,$(entry free_completed 4096 104857600),$all" \
    "$all,$(entry oom 0 1048576)" >two.json
expect 0 '"ops":2,"allocs":2,' replay --driver sim --json two.json
expect 0 '"kind":"PyTorch snapshot","device":1,' report two.json

# Without a history even a failure may have left no trace.
snapshot "$half" '[0,0]'
expect 0 'nothing wrong that could be seen$' explain job.json
expect 0 'advice +record a history, from before the job begins: torch.cuda.memory._record' explain job.json
# A program that kept no history names its failure in its snapshot.
snapshot "$full" '[0,0]'
sed 's/}$/,"granary":{"device":0,"facts":{"total_bytes":115343360},"failure":{"rounded_bytes":20971520,"device_free_bytes":10485760,"stream":0,"pool":0}}}/' \
    job.json >told.json
expect 1 '^told.json: peak: what is live and the request are 120.0 MiB, 10.0 MiB more than the card$' explain told.json
expect 1 '"oom_at":1' replay --driver sim --json --memory 110MiB told.json
sed 's/}$/,"granary":{"device":0,"statistics":{"out_of_memory":1}}}/' job.json >told.json
expect 0 'looked at +the end, device 0: there is no history; the job ran out of memory before$' explain told.json
expect 0 '"out_of_memory":false,"out_of_memory_before":true,' explain --json told.json
# What is live at the end is no proof of what other settings would have done.
quarters=$(for i in 1 2; do printf '{"size":26214400,"state":"active_allocated"},{"size":26214400,"state":"inactive"},'; done)
snapshot "${quarters%,}" '[0,0]' "$(entry oom 0 41943040 ',"device_free":1048576')"
expect 1 'fragmentation: 50.0 MiB are free where 40.0 MiB were asked for' explain job.json
expect 1 'advice +record a longer history' explain job.json
expect 1 '"best":null}$' explain --json job.json

expect 2 'no option "-ab"' explain -ab x
expect 2 'no option "-ab"' replay --json -ab x
expect 2 '"--json=yes"' summary --json=yes x
cp good.trace $'\xff.trace'
expect 0 '"file":"\?\.trace"' explain --json $'\xff.trace'

# Jobs that ran out of memory, each with the line that is to blame. Lines are known with libdw only.
blame() {
    local job=$1 words=$2 function=$3 mark=$4 line
    "$jobs" "$job" "$job.pickle" >out 2>err || { cat err >&2; failed=$((failed + 1)); }
    line=$(grep -n "/\* .*$mark.* \*/$" "$root/test/tool/jobs.c" | head -n 1 | cut -d : -f 1)
    "$tool" explain "$job.pickle" >out # no pipe: its exit status is 1
    if grep -q 'jobs\.c:' out; then function="jobs.c:$line \($function\)"; fi
    expect 1 "^$job.pickle: $words" explain "$job.pickle"
    expect 1 "$function" explain "$job.pickle"
}
blame leak 'leak: what is allocated at .*keep_result.* only grows$' keep_result leak
blame fragment 'fragmentation: 720.0 MiB are free where 96.0 MiB were asked for, in pieces of at most 48.0 MiB$' \
    keep_small fragment
blame peak 'peak: what is live and the request are 1.05 GiB, 56.0 MiB more than the card$' activations peak
blame strand 'stranded: 720.0 MiB are free, but in pools of other streams$' keep_small strand
# Lines are found as well where the compiler wrote no table of addresses.
if grep -q 'jobs\.c:' out && objcopy -R .debug_aranges "$jobs" bare 2>/dev/null; then
    ./bare peak bare.pickle >out 2>err || { cat err >&2; failed=$((failed + 1)); }
    expect 1 'jobs\.c:[0-9]+ \(activations\)' explain bare.pickle
fi

# ---- reports ---------------------------------------------------------------------------------------

# same WHAT COMMAND...: a condition that is no line of output.
same() {
    local what=$1
    shift
    if "$@" >/dev/null; then passed=$((passed + 1)); else echo "tool: $what" >&2; failed=$((failed + 1)); fi
}

expect 0 'granary report' report --help
expect 0 '"kind":"trace","device":0' report good.trace
expect 0 '"kind":"trace","device":0' report --memory 80MiB big.trace
same 'report -o fails' "$tool" report -o one.html good.trace.gz
same 'report --output fails' "$tool" report --output two.html good.trace.gz
same 'two reports of one file differ' cmp one.html two.html
same 'a report is not one page' grep -q '^</html>$' one.html
expect 2 'a file to report on is missing' report
expect 2 'one file at a time' report good.trace big.trace
expect 2 '--device: "x" is not' report --device x good.trace
expect 2 'good.trace: it says nothing of device 7' report --device 7 good.trace
expect 2 '--memory: "lots" is not a size' report --memory lots good.trace
expect 2 'no option "--fast"' report --fast good.trace
expect 2 '-o: /no/such/place: No such' report -o /no/such/place good.trace
expect 2 '-o: /dev/full: No space' report -o /dev/full good.trace
same 'a report to a device removes it' test -c /dev/full
expect 2 'no-such-file: No such file' report no-such-file
# On a terminal: no page, and tables as wide as it is.
if command -v script >/dev/null; then
    script -qec "'$tool' report good.trace" /dev/null </dev/null >out
    same 'a page goes to a terminal' grep -q 'name a file with -o' out
    for columns in 100 80; do
        script -qec "stty cols $columns; '$tool' options" /dev/null </dev/null >out
        same 'a table is wider than its terminal' \
            awk -v most=$((columns + 1)) 'length > most || / \r?$/ {bad = 1} END {exit bad || NR < 30}' out
    done
fi
for s in "$golden"/*.pickle.gz; do
    same "no report of $s" "$tool" report -o golden.html "$s"
    same "the report of $s is larger than a megabyte" test "$(wc -c <golden.html)" -lt 1048576
done
expect 0 '"kind":"fragmentation","failed":true,"entry":14308' report "$fragmented"

echo "tool: $passed passed, $failed failed"
[ $failed = 0 ]
