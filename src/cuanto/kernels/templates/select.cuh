// Select significant quartets: a warp screens one bra with `span` kets and appends those with lower <= bound < upper to the
// list, 32 at a time, the last ones padded to a multiple of `pad` with ket -1. `count`: length of the list with and without
// padding.
// FORCES: bounds of forces, with derivatives of one of the two pairs (their slopes) and the density of both electrons.

KERNEL(THREADS) ENTRY(PARAMETERS) {
    __shared__ int buffers[THREADS / 32][64];
    const int lane = threadIdx.x % 32;
    int* buffer = buffers[threadIdx.x / 32];
    const INDEX spans = (kets + span - 1) / span;
    const INDEX warp = ((INDEX)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const INDEX b = bra_begin + warp / spans, begin = warp % spans * span;
#if FORCES
    if (b >= bra_end || bra_bound[b] * slope_reach + bra_slope[b] * reach < lower) return;
#else
    if (b >= bra_end || bra_bound[b] * reach < lower) return;
#endif
    const INDEX end = begin + span < kets ? begin + span : kets;
    const double bound = bra_bound[b];
    const int a_segment = bra_segment[2 * b], b_segment = bra_segment[2 * b + 1];
    const double *near_a = largest + (INDEX)a_segment * segments, *near_b = largest + (INDEX)b_segment * segments;
#if !FORCES
    const double own = want_j ? 2 * near_a[b_segment] : 0.0;
#endif
    int waiting = 0;
    for (INDEX first = begin; first < end; first += 32) {
        const INDEX ket = first + lane;
        bool alive = ket < end && (!same || bra_pair[b] >= ket_pair[ket]);
        if (alive) {
            const int c = ket_segment[2 * ket], d = ket_segment[2 * ket + 1];
#if FORCES
            const double density = near_a[c] * near_b[d] + near_a[d] * near_b[c];
            const double all = (bound * ket_slope[ket] + bra_slope[b] * ket_bound[ket]) * density;
#else
            double density = fmax(fmax(near_a[c], near_a[d]), fmax(near_b[c], near_b[d]));
            if (want_j) density = fmax(density, fmax(own, 2 * largest[(INDEX)c * segments + d]));
            const double all = bound * ket_bound[ket] * density;
#endif
            alive = all >= lower && all < upper;
        }
        const unsigned mask = __ballot_sync(0xffffffffu, alive);
        if (alive) buffer[waiting + __popc(mask & ((1u << lane) - 1u))] = (int)ket;
        waiting += __popc(mask);
        __syncwarp();
        const bool last = first + 32 >= end;
        while (waiting >= 32 || (last && waiting > 0)) {
            const int there = waiting < 32 ? waiting : 32, padded = (there + pad - 1) / pad * pad;
            int place = 0;
            if (lane == 0) {
                place = atomicAdd(count, padded);
                atomicAdd(count + 1, there);
            }
            place = __shfl_sync(0xffffffffu, place, 0);
            if (lane < padded) {
                list[2 * (INDEX)(place + lane)] = (int)b;
                list[2 * (INDEX)(place + lane) + 1] = lane < there ? buffer[lane] : -1;
            }
            const int next = buffer[32 + lane];
            __syncwarp();
            buffer[lane] = next;
            __syncwarp();
            waiting -= there;
        }
    }
}
