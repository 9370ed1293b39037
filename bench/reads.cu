/* SPDX-License-Identifier: Apache-2.0
 * Random reads of 16 bytes over a range, a kernel for bench/growth.c. */
extern "C" __global__ void bench_reads(const uint4 *from, unsigned long long count, unsigned long long seed,
                                       unsigned reads, uint4 *out) {
    unsigned long long x = seed + (blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x + 1) * 0x9e3779b97f4a7c15ull;
    uint4 sum = {0, 0, 0, 0};
    for (unsigned i = 0; i < reads; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const uint4 v = from[__umul64hi(x, count)]; /* x of 64 random bits, so this lies in [0, count) */
        sum.x ^= v.x;
        sum.y ^= v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    if (sum.x == 0x12345678u && sum.y == 777u && sum.z == 1u) *out = sum; /* so that the reads are needed */
}
