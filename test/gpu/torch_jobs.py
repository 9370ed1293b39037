# SPDX-License-Identifier: Apache-2.0
"""PyTorch on granary, on a GPU, beside PyTorch's own allocator.   torch_jobs.py FOLDER_OF_THE_LIBRARY [JOB...]

Each job runs in a process of its own, once on each allocator. Checks print a line each; the exit status is 1 when one
fails, 77 when there is no GPU or no PyTorch.
"""

import json
import os
import subprocess
import sys
import time

STEPS, WARM = 60, 10


def start(kind):
    """PyTorch, on the allocator of that kind."""
    if kind == "expandable":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    import torch

    if kind == "granary":
        sys.path.insert(0, sys.argv[1])
        import granary_torch

        granary_torch.enable(conf=os.environ.get("JOB_CONF", ""))
    torch.manual_seed(7)
    return torch


# ---- jobs: what each returns must be the same on every allocator, but for what begins with "_" --------------------


def train(kind):
    """A small transformer on sequences whose lengths vary."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch = start(kind)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
                                torch.nn.Linear(512, 1000)).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    lengths = torch.randint(64, 1024, (STEPS,), generator=torch.Generator().manual_seed(3)).tolist()
    losses = []
    for step, length in enumerate(lengths):
        if step == WARM:
            torch.cuda.synchronize()
            began = time.perf_counter()
        x = torch.randn(16, length, 512, generator=torch.Generator().manual_seed(step)).cuda()
        loss = model(x).float().logsumexp(-1).mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        losses.append(loss.item())
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    return {"losses": losses, "_ms": (time.perf_counter() - began) * 1e3 / (STEPS - WARM),
            "_active": stats["active_bytes.all.peak"], "_reserved": stats["reserved_bytes.all.peak"]}


def streams(kind):
    """Blocks of one stream that another uses, with record_stream; contents are summed."""
    torch = start(kind)
    side = torch.cuda.Stream()
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for i in range(300):
        x = torch.full((1 << 20,), float(i), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                total += x.double().mean()
            x.record_stream(side)
        del x
        torch.full((1 << 20,), -1.0, device="cuda")  # would take the place of x too early
    torch.cuda.synchronize()
    return {"total": total.item()}


def graph(kind):
    """A step captured into a graph, replayed with other inputs; a second graph shares its pool."""
    torch = start(kind)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
    x = torch.zeros(256, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        y = model(x)
        y.sum().backward()
    with torch.cuda.graph(second, pool=first.pool()):
        z = (y * 2).relu().sum()
    sums = []
    for i in range(20):
        x.copy_(torch.randn(256, 1024, generator=torch.Generator().manual_seed(i)))
        scratch = torch.full((8 << 20,), 3.0, device="cuda")  # outside memory must not be the graph's
        first.replay()
        second.replay()
        sums.append([y.sum().item(), z.item(), model[0].weight.grad.sum().item(), scratch.sum().item()])
    del y, z
    first.reset()
    second.reset()
    torch.cuda.empty_cache()
    return {"sums": sums}


def callables(kind):
    """torch.cuda.make_graphed_callables: forward and backward captures in one pool."""
    torch = start(kind)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
    sample = torch.randn(64, 512, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (sample,))
    out = []
    for i in range(10):
        x = torch.randn(64, 512, generator=torch.Generator().manual_seed(i)).cuda().requires_grad_()
        y = graphed(x)
        y.square().mean().backward()
        out.append([y.sum().item(), x.grad.sum().item()])
    return {"out": out}


def shortage(kind):
    """Runs out under a limit, says so, and goes on."""
    torch = start(kind)
    torch.cuda.set_per_process_memory_fraction(0.02)
    limit = int(torch.cuda.get_device_properties(0).total_memory * 0.02)
    kept, words, error = [], "", ""
    try:
        while True:
            kept.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    except RuntimeError as e:
        words, error = str(e), type(e).__name__
    count = len(kept)
    kept.clear()
    again = torch.ones(256 << 20, dtype=torch.uint8, device="cuda")
    return {"said": "CUDA out of memory" in words, "error": error, "again": int(again[-1]),
            "full": (count + 1) * (256 << 20) > limit * 0.9, "_words": words}


def find_size(torch, error):
    """As programs look for the largest batch: twice as much until it does not fit, and then the last that did."""
    torch.cuda.set_per_process_memory_fraction(0.02)
    size, words = 64 << 20, ""
    while not words:
        try:
            torch.empty(size, dtype=torch.uint8, device="cuda")
            size *= 2
        except error as e:
            words = str(e)
    last = torch.ones(size // 2, dtype=torch.uint8, device="cuda")
    return {"fits": size // 2, "last": int(last[-1]), "begins": words[:19], "frames": "Exception raised from" in words}


def finder(kind):
    """A program that looks for a size that fits, and catches torch.OutOfMemoryError, finds it and goes on."""
    torch = start(kind)
    return find_size(torch, torch.OutOfMemoryError)


def broken(kind):
    """A capture that breaks: the next capture works."""
    torch = start(kind)
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    failed, kept = False, torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            y = x + 1
            torch.cuda.synchronize()  # not allowed, and breaks it
    except RuntimeError:
        failed = True
    y = None
    del kept
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    given = torch.cuda.memory_reserved() < 64 << 20
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 2
    graph.replay()
    return {"failed": failed, "_given": given, "sum": y.sum().item()}


def backward(kind):
    """Running out in a backward pass, on another thread, is caught, and the program goes on."""
    torch = start(kind)

    class Hungry(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad + torch.empty(1 << 50, dtype=torch.uint8, device="cuda")[: grad.numel()]

    x = torch.ones(8, device="cuda", requires_grad=True)
    said, error = False, ""
    try:
        Hungry.apply(x).sum().backward()
    except RuntimeError as e:
        said, error = "CUDA out of memory" in str(e), type(e).__name__
    return {"said": said, "error": error, "again": torch.ones(1 << 20, device="cuda").sum().item()}


def peers(kind):
    """Two GPUs in one program: copies, a kernel that writes to the other, gradients, a model on both."""
    torch = start(kind)
    if torch.cuda.device_count() < 2:
        return {"skipped": "one GPU"}
    a = torch.arange(1 << 22, device="cuda:0").reshape(2048, 2048)
    b = torch.empty(2048, 2048, dtype=torch.int64, device="cuda:1")
    b.copy_(a.t())
    out = {"copied": torch.equal(a.to("cuda:1").cpu(), a.cpu()), "strided": torch.equal(b.cpu(), a.t().cpu())}
    x = torch.ones(1 << 20, device="cuda:0", requires_grad=True)
    (x.to("cuda:1") * 2).sum().backward()
    out["gradient"] = x.grad.sum().item()
    model = torch.nn.Linear(512, 512).to("cuda:0")
    torch.nn.DataParallel(model, [0, 1])(torch.ones(64, 512, device="cuda:0")).sum().backward()
    out["parallel"] = model.weight.grad.sum().item()
    t = torch.ones(1 << 20, device="cuda:0")
    t.record_stream(torch.cuda.Stream(1))
    del t
    torch.cuda.synchronize(1)
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda:0")
    out["_pending"] = torch.cuda.memory_stats(0).get("granary.pending_blocks")
    return out


def pair(kind):
    """A tensor made and dropped, from Python."""
    torch = start(kind)
    best = {}
    for size in (512, 1 << 20, 64 << 20):
        torch.empty(size, dtype=torch.uint8, device="cuda")
        times = []
        for _ in range(7):
            began = time.perf_counter()
            for _ in range(20000):
                torch.empty(size, dtype=torch.uint8, device="cuda")
            times.append((time.perf_counter() - began) / 20000 * 1e9)
        best[size] = sorted(times)[3]
    return {"_ns": best}


def manage(kind):
    """What a program asks for: figures, table, snapshot, empty_cache."""
    torch = start(kind)
    x = torch.ones(100 << 20, dtype=torch.uint8, device="cuda")
    out = {"allocated": torch.cuda.memory_allocated(), "most": torch.cuda.max_memory_allocated()}
    table = torch.cuda.memory_summary()
    del x
    torch.cuda.reset_peak_memory_stats()
    out["after"] = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    out["reserved"] = torch.cuda.memory_reserved()
    out["table"] = "Allocated memory" in table
    torch.cuda.memory._record_memory_history(max_entries=10000, stacks="python")
    torch.ones(1000, device="cuda")
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    out["recorded"] = any(e["action"] == "alloc" and any("torch_jobs" in f["filename"] for f in e["frames"])
                          for e in events)
    torch.cuda.memory._record_memory_history(enabled=None)
    if kind == "granary":
        import granary_torch
        import pickle
        import tempfile

        granary_torch.record_history()
        torch.ones(1000, device="cuda")
        with tempfile.TemporaryDirectory() as folder:
            granary_torch.snapshot(os.path.join(folder, "s.pickle"))
            with open(os.path.join(folder, "s.pickle"), "rb") as f:
                events = pickle.load(f)["device_traces"][0]
        out["_events"] = any(e["action"] == "alloc" and any("torch_jobs" in f["filename"] for f in e["frames"])
                             for e in events)
    return out


def unchanged(kind):
    """A program that names no allocator, and catches torch.cuda.OutOfMemoryError."""
    torch = start("as it is" if kind == "granary" else kind)  # by `python3 -m granary_torch PROGRAM`: see main
    found = find_size(torch, torch.cuda.OutOfMemoryError)
    kept = [torch.full((n << 16,), float(n), device="cuda") for n in range(1, 40)]
    return {"sum": sum(x.sum().item() for x in kept), "held": torch.cuda.memory_allocated() > 0,
            **found, "_on": "granary.misses" in torch.cuda.memory_stats()}


JOBS = [train, streams, graph, callables, broken, shortage, finder, backward, manage, unchanged, peers, pair]


def main():
    try:
        import torch
    except ImportError:
        print("torch_jobs: no PyTorch: skipped")
        return 77
    if not torch.cuda.is_available():
        print("torch_jobs: no GPU: skipped")
        return 77
    failed, results = 0, {}
    built = os.path.exists(os.path.join(sys.argv[1], "libgranary_torch_error.so"))
    unused = "" if built else "there is none; `make torch-error` says why"

    def check(good, sentence, why=""):
        nonlocal failed
        failed += not good
        print(("ok    " if good else "FAIL  ") + sentence + ("" if good else f": {why}"), flush=True)

    for job in [job for job in JOBS if job.__name__ in sys.argv[2:] or len(sys.argv) == 2]:
        for kind in ("expandable", "granary") if job is not train else ("classic", "expandable", "granary"):
            program = [__file__, sys.argv[1], "--job", job.__name__, kind]
            environment = dict(os.environ)
            if job is unchanged and kind == "granary":
                program = ["-m", "granary_torch", *program]
                path = [os.path.abspath(sys.argv[1]), os.environ.get("PYTHONPATH")]
                environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
            done = subprocess.run([sys.executable, *program], env=environment, capture_output=True, text=True,
                                  timeout=120)
            warned = [line for line in done.stderr.splitlines() if "running out of memory raises RuntimeError" in line]
            unused = unused or "".join(warned[:1])
            last = done.stdout.strip().splitlines()[-1:] or [""]
            try:
                results[job.__name__, kind] = json.loads(last[0])
            except ValueError:
                results[job.__name__, kind] = None
                check(False, f"{job.__name__} on {kind} ends", (done.stderr or done.stdout)[-1500:])
        a, b = results[job.__name__, "expandable"], results[job.__name__, "granary"]
        if a and b:
            public = [{k: v for k, v in r.items() if k[0] != "_"} for r in (a, b)]
            check(public[0] == public[1], f"{job.__name__}: {job.__doc__.split(chr(10))[0]} The same on both", f"{public}")
    def private(job, key):
        return (results.get((job, "granary")) or {}).get(key)

    check(not unused, "libgranary_torch_error.so is there, for this PyTorch, and used", unused)
    if ("shortage", "granary") in results:
        words = private("shortage", "_words") or ""
        check("granary: " in words and "Most likely to help" in words, "running out is explained", words)
    if ("manage", "granary") in results:
        check(private("manage", "_events"), "a snapshot has events with Python stacks")
    if ("unchanged", "granary") in results:
        check(private("unchanged", "_on"), "a program runs on granary as it is")
    if private("peers", "_pending") is not None:
        check(private("peers", "_pending") == 0, "a block that a stream of the other GPU used is free again")
    if ("broken", "granary") in results:
        check(private("broken", "_given"), "after a capture that broke memory is given back")

    print(f"\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print("training, lengths vary    ms/step   peak active MiB   reserved MiB   ratio")
    for kind in ("classic", "expandable", "granary"):
        r = results.get(("train", kind))
        if r:
            print("%-24s %8.2f %17.1f %14.1f %7.4f" % (kind, r["_ms"], r["_active"] / 2**20, r["_reserved"] / 2**20,
                                                     r["_reserved"] / r["_active"]))
    print("torch.empty, ns           " + "".join("%12s" % s for s in ("512 B", "1 MiB", "64 MiB")))
    for kind in ("expandable", "granary"):
        r = results.get(("pair", kind))
        if r:
            print("%-26s" % kind + "".join("%12.0f" % v for v in r["_ns"].values()))
    return failed > 0


if __name__ == "__main__":
    if sys.argv[2:3] == ["--job"]:
        print(json.dumps(globals()[sys.argv[3]](sys.argv[4])))
    else:
        sys.exit(main())
