/* SPDX-License-Identifier: Apache-2.0
 * The shapes of bench/latency.c on PyTorch's allocator, through its own C++ interface.
 *
 * Usage: peer WAY JSON hit|threads|holes|trace|growth|tight [TRACE...]. WAY names the configuration,
 * which the environment variable PYTORCH_CUDA_ALLOC_CONF sets: nothing for classic segments,
 * expandable_segments:True, backend:cudaMallocAsync. Rows are added to the file JSON. */
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "timing.h"

namespace allocator = c10::cuda::CUDACachingAllocator;

static Rows rows;
static std::vector<c10::cuda::CUDAStream> streams;

static void *take(size_t size, int stream = 0) {
    return allocator::raw_alloc_with_stream(size, streams[stream].stream());
}

static void give(void *ptr) {
    allocator::raw_delete(ptr);
}

/* ---- pairs, random replacement ------------------------------------------------------------------ */

static void pairs() {
    const size_t sizes[] = {512,    1024,    4096,          100000,  1u << 20, (1u << 20) + 512,
                            4u << 20, 20u << 20, 64u << 20, 512u << 20};
    for (size_t size : sizes)
        rows.add("pair", "", (double)size, batches(101, 500, [&] { give(take(size)); }));
}

static void replace(int live) {
    const int steps = 1 << 18;
    std::mt19937_64 random(1);
    std::uniform_real_distribution<> exponent(9, 23);
    std::vector<void *> blocks(live);
    std::vector<size_t> sizes(steps);
    std::vector<int> picks(steps);
    for (int i = 0; i < steps; i++) {
        sizes[i] = (size_t)std::exp2(exponent(random));
        picks[i] = (int)(random() % (unsigned)live);
    }
    for (auto &block : blocks) block = take((size_t)std::exp2(exponent(random)));
    size_t at = 0;
    auto step = [&] {
        size_t i = at++ & (steps - 1);
        give(blocks[picks[i]]);
        blocks[picks[i]] = take(sizes[i]);
    };
    for (int i = 0; i < steps; i++) step();
    rows.add("replace", "", live, batches(201, 500, step));
    for (void *block : blocks) give(block);
    allocator::emptyCache();
}

/* ---- holes -------------------------------------------------------------------------------------- */

static void holes(int count) {
    std::vector<void *> blocks;
    for (int i = 0; i < 2 * count; i++) blocks.push_back(take(1024));
    for (int i = 0; i < 2 * count; i += 2) give(blocks[i]);
    rows.add("holes_equal", "pair of 1 KiB", count, batches(51, 500, [&] { give(take(1024)); }));
    rows.add("holes_smaller", "pair of 2 KiB", count, batches(51, 500, [&] { give(take(2048)); }));
    void *queue[16];
    size_t at = 0;
    for (auto &slot : queue) slot = take(1024);
    rows.add("holes_queue", "1 KiB, oldest of 16 freed", count, batches(51, 500, [&] {
                 void *&slot = queue[at++ % 16];
                 give(slot);
                 slot = take(1024);
             }));
    for (void *slot : queue) give(slot);
    for (int i = 1; i < 2 * count; i += 2) give(blocks[i]);
    allocator::emptyCache();
}

/* ---- threads ------------------------------------------------------------------------------------ */

/* Each with a stream of its own: what a pair takes a thread, as bench/shapes_many.c measures it. */
static void threads_own(int count) {
    std::vector<int> numbers(count);
    std::vector<void *> contexts(count);
    for (int k = 0; k < count; k++) {
        numbers[k] = k;
        contexts[k] = &numbers[k];
    }
    auto pairs = [](void *context, size_t n) {
        cudaSetDevice(0);
        for (size_t i = 0; i < n; i++) give(take(4096 * (1 + i % 16), *(int *)context));
    };
    rows.add("threads_own", "a pair of one", count, measure_crew(pairs, contexts.data(), count, 1000, 1e9));
}

/* All on one stream: wall time. */
static void threads_shared(int count) {
    const int each = 20000;
    std::vector<double> walls;
    for (int run = -1; run < 3; run++) {
        std::vector<std::thread> crew;
        std::vector<double> began(count), ended(count);
        for (int k = 0; k < count; k++)
            crew.emplace_back([&, k] {
                cudaSetDevice(0);
                give(take(4096));
                began[k] = now();
                for (int i = 0; i < each; i++) give(take(4096 * (1 + (size_t)i % 16)));
                ended[k] = now();
            });
        for (auto &one : crew) one.join();
        double from = *std::min_element(began.begin(), began.end());
        double to = *std::max_element(ended.begin(), ended.end());
        if (run >= 0) walls.push_back((to - from) / each);
    }
    rows.add("threads_shared", "wall time by pairs of one", count, median(walls));
}

/* ---- traces ------------------------------------------------------------------------------------- */

struct Op {
    bool alloc;
    long id;
    size_t size;
    int stream;
};

struct Trace {
    std::string name;
    std::vector<Op> ops;
    long most = 0;
    size_t peak = 0; /* bytes in use, sizes rounded to 512 */
};

static Trace read_trace(const char *path) {
    Trace t;
    char line[256];
    std::string text(path);
    t.name = text.substr(text.rfind('/') + 1);
    t.name = t.name.substr(0, t.name.find('.'));
    std::FILE *from = popen(("gzip -dcf '" + text + "'").c_str(), "r");
    while (from != nullptr && std::fgets(line, sizeof line, from) != nullptr) {
        Op op{line[0] == 'a', 0, 0, 0};
        if (line[0] == 'a' && std::sscanf(line + 1, "%ld %zu %d", &op.id, &op.size, &op.stream) != 3) continue;
        if (line[0] == 'f' && std::sscanf(line + 1, "%ld", &op.id) != 1) continue;
        if (line[0] != 'a' && line[0] != 'f') continue;
        t.most = std::max(t.most, op.id);
        t.ops.push_back(op);
    }
    if (from != nullptr) pclose(from);
    std::vector<size_t> sizes(t.most + 1, 0);
    size_t live = 0;
    for (const Op &op : t.ops) {
        if (op.alloc) live += sizes[op.id] = (op.size + 511) / 512 * 512;
        else live -= sizes[op.id];
        t.peak = std::max(t.peak, live);
    }
    return t;
}

/* Nanoseconds an operation. Throws when the memory does not suffice. */
static double run(const Trace &t, std::vector<void *> &blocks) {
    double start = now();
    for (const Op &op : t.ops) {
        if (op.alloc) {
            blocks[op.id] = take(op.size, op.stream % 16);
        } else {
            give(blocks[op.id]);
            blocks[op.id] = nullptr;
        }
    }
    return (now() - start) / (double)t.ops.size();
}

static void clear(std::vector<void *> &blocks) {
    for (void *&block : blocks) {
        if (block != nullptr) give(block);
        block = nullptr;
    }
}

static void traces(int count, char **paths) {
    for (int i = 0; i < count; i++) {
        Trace t = read_trace(paths[i]);
        std::vector<void *> blocks(t.most + 1, nullptr);
        auto fresh = [&] {
            clear(blocks);
            allocator::emptyCache();
            cudaDeviceSynchronize();
            std::this_thread::sleep_for(std::chrono::milliseconds(100)); /* as bench/shapes_trace.c does */
        };
        double cold = passes(3, fresh, [&] { return run(t, blocks); });
        double warm = passes(3, [&] { clear(blocks); }, [&] { return run(t, blocks); });
        clear(blocks);
        rows.add("trace_cold", t.name.c_str(), (double)t.ops.size(), cold);
        rows.add("trace_warm", t.name.c_str(), (double)t.ops.size(), warm);
        allocator::emptyCache();
    }
}

/* ---- growth, smallest card ---------------------------------------------------------------------- */

static void growth() {
    for (size_t gib : {(size_t)1, (size_t)16}) {
        std::vector<double> grow, back;
        for (int k = 0; k < 7; k++) {
            allocator::emptyCache();
            cudaDeviceSynchronize();
            double start = now();
            void *ptr = take(gib << 30);
            grow.push_back((now() - start) / 1e3);
            start = now();
            give(ptr);
            allocator::emptyCache();
            back.push_back((now() - start) / 1e3);
        }
        rows.add("growth", "cold", (double)gib, median(grow), "us");
        rows.add("growth", "back", (double)gib, median(back), "us");
    }
}

/* The least of some caps, times peak active, at which the trace ends. */
static void tight(int count, char **paths) {
    const double caps[] = {1.003, 1.005, 1.01, 1.02, 1.05, 1.10, 1.20, 1.50, 2.00};
    size_t free_bytes = 0, total = 1;
    cudaMemGetInfo(&free_bytes, &total);
    for (int i = 0; i < count; i++) {
        Trace t = read_trace(paths[i]);
        std::vector<void *> blocks(t.most + 1, nullptr);
        double least = 0;
        for (double cap : caps) {
            bool fits = true;
            allocator::emptyCache();
            cudaDeviceSynchronize();
            allocator::setMemoryFraction(std::min(1.0, cap * (double)t.peak / (double)total), 0);
            try {
                run(t, blocks);
            } catch (const c10::Error &) {
                fits = false;
            }
            clear(blocks);
            if (!fits) continue;
            least = cap;
            break;
        }
        allocator::setMemoryFraction(1.0, 0);
        allocator::emptyCache();
        rows.add("smallest_card", t.name.c_str(), (double)(t.peak >> 20), least, "times");
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "use: peer WAY JSON hit|threads|holes|trace|growth|tight [TRACE...]\n");
        return 2;
    }
    if (cudaSetDevice(0) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) {
        std::fprintf(stderr, "peer: no GPU\n");
        return 1;
    }
    measure_calibrate();
    allocator::init(1);
    for (int i = 0; i < 16; i++) streams.push_back(c10::cuda::getStreamFromPool(false, 0));
    rows = {argv[1], std::fopen(argv[2], "a")};
    const std::string what = argv[3];
    if (what == "hit") {
        pairs();
        for (int live : {100, 1000, 10000, 100000}) replace(live);
    } else if (what == "holes") {
        for (int count : {4096, 16384, 65536}) holes(count);
    } else if (what == "threads") {
        for (int count : {1, 2, 4, 8}) threads_own(count);
        for (int count : {1, 2, 4, 8}) threads_shared(count);
    } else if (what == "trace") {
        traces(argc - 4, argv + 4);
    } else if (what == "growth") {
        growth();
    } else if (what == "tight") {
        tight(argc - 4, argv + 4);
    } else {
        return 2;
    }
    if (rows.json != nullptr) std::fclose(rows.json);
    return 0;
}
