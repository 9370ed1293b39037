/* SPDX-License-Identifier: Apache-2.0
 * What the programs on PyTorch's allocator share: a clock, medians as bench/measure.h takes them, and rows of JSON. */
#ifndef BENCH_PEER_TIMING_H
#define BENCH_PEER_TIMING_H

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

extern "C" {
#include "../measure.h"
}

static inline double now() { /* nanoseconds */
    using namespace std::chrono;
    return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

static inline double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

/* Median over batches of the time of one call of work(). */
template <class Work> double batches(size_t count, size_t batch, Work work) {
    const struct measure_plan plan = {batch, count, 0};
    auto do_work = [](void *context, size_t n) {
        for (size_t i = 0; i < n; i++) (*(Work *)context)();
    };
    return measure_run(do_work, &work, &plan).median;
}

/* Median of what work() says, which prepare() goes before. */
template <class Prepare, class Work> double passes(size_t count, Prepare prepare, Work work) {
    struct measure_samples samples;
    for (measure_begin(&samples, count); measure_more(&samples);) {
        prepare();
        measure_sample(&samples, work());
    }
    return measure_end(&samples);
}

/* One line to people on standard output, one JSON object a line to a file. */
struct Rows {
    std::string way;
    std::FILE *json;
    void add(const char *shape, const char *detail, double param, double ns, const char *unit = "ns") {
        std::printf("%-14s %-16s %-26s %10.0f %12.*f %s\n", way.c_str(), shape, detail, param,
                    std::string(unit) == "times" ? 3 : 1, ns, unit);
        std::fflush(stdout);
        if (json == nullptr) return;
        std::fprintf(json,
                     "{\"peer\":\"%s\",\"shape\":\"%s\",\"detail\":\"%s\",\"param\":%.0f,\"%s\":%.3f}\n",
                     way.c_str(), shape, detail, param, unit, ns);
        std::fflush(json);
    }
};

#endif
