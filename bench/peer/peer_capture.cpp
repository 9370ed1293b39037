/* SPDX-License-Identifier: Apache-2.0
 * The shape of bench/capture.c on PyTorch's allocator: record_stream inside a graph capture, with the
 * time spent in the allocator alone.
 *
 * Usage: capture WAY JSON. PYTORCH_CUDA_ALLOC_CONF says whether graph_capture_record_stream_reuse is on. */
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include "timing.h"

namespace allocator = c10::cuda::CUDACachingAllocator;

static const size_t block_size = 4u << 20;

static long long reserved() {
    return (long long)allocator::getDeviceStats(0).reserved_bytes[0].current;
}

static bool is_capturing(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

static void must(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "peer: %s: %s\n", what, cudaGetErrorString(code));
    std::exit(1);
}

static void capture(Rows &rows, c10::cuda::CUDAStream main, c10::cuda::CUDAStream side, void *sum, int n,
                    unsigned long long name, bool report) {
    cudaEvent_t fork, join;
    cudaGraph_t graph = nullptr;
    std::vector<double> rounds;
    must(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "event");
    must(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), "event");
    long long before = reserved();
    allocator::beginAllocateToPool(0, {0ull, name}, is_capturing);
    must(cudaStreamBeginCapture(main.stream(), cudaStreamCaptureModeThreadLocal), "begin capture");
    double began = now();
    for (int i = 0; i < n; i++) {
        double start = now();
        c10::DataPtr block = allocator::get()->allocate(block_size);
        double spent = now() - start;
        must(cudaMemsetAsync(block.get(), i & 255, block_size, main.stream()), "fill");
        must(cudaEventRecord(fork, main.stream()), "record");
        must(cudaStreamWaitEvent(side.stream(), fork, 0), "wait");
        must(cudaMemcpyAsync(sum, block.get(), block_size, cudaMemcpyDeviceToDevice, side.stream()), "copy");
        start = now();
        allocator::recordStream(block, side);
        block.clear();
        spent += now() - start;
        must(cudaEventRecord(join, side.stream()), "record");
        must(cudaStreamWaitEvent(main.stream(), join, 0), "wait");
        rounds.push_back(spent);
    }
    double whole = (now() - began) / n;
    must(cudaStreamEndCapture(main.stream(), &graph), "end capture");
    allocator::endAllocateToPool(0, {0ull, name});
    double mib = (double)(reserved() - before) / 1048576;
    must(cudaGraphDestroy(graph), "destroy");
    allocator::releasePool(0, {0ull, name});
    must(cudaDeviceSynchronize(), "synchronize");
    allocator::emptyCache();
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    if (!report) return;
    rows.add("capture", "pool grows", n, mib, "MiB");
    rows.add("capture", "in the allocator, a round", n, median(rounds));
    rows.add("capture", "whole round", n, whole);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    if (cudaSetDevice(0) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) {
        std::fprintf(stderr, "peer: no GPU\n");
        return 1;
    }
    allocator::init(1);
    Rows rows = {argv[1], std::fopen(argv[2], "a")};
    c10::cuda::CUDAStream main = c10::cuda::getStreamFromPool(false, 0), side = c10::cuda::getStreamFromPool(false, 0);
    c10::cuda::setCurrentCUDAStream(main);
    void *sum = nullptr;
    must(cudaMalloc(&sum, block_size), "malloc");
    unsigned long long name = 1000;
    for (int n : {100, 400, 1600, 10000}) {
        capture(rows, main, side, sum, n, name++, false);
        capture(rows, main, side, sum, n, name++, true);
    }
    return 0;
}
