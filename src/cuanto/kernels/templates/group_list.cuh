// Any class of integrals from index tables on the GPU for a list of (bra, ket). Every `lanes` consecutive items share
// their bra (padded with ket -1); results [column, bra function, ket function, item].

struct GroupKeep {
    REAL* out;  // of this item and column
    INDEX stride;
    int ket_functions;
    bool wanted;
    FN void operator()(int4 head, int ket, REAL value, int pass, const Workers&) const {
        if (wanted) out[((INDEX)head.w * ket_functions + ket + pass) * stride] = value;
    }
};

// The largest number of primitives among the kets of a block.
FN INDEX group_longest(INDEX mine, const Workers& w) {
    __shared__ int longest;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();
    if (w.worker == 0) atomicMax(&longest, (int)mine);
    __syncthreads();
    return longest;
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ REAL shared_memory[];
    const Workers w = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes, (int)blockDim.x / lanes};
    const Sides sides = SIDES;
    const Tables tables = TABLES;
    REAL* memory = scratch_stride ? scratch + blockIdx.x * scratch_stride : shared_memory;
    const GroupWork work = group_work(sides, tables, slots, memory, w);
    const int ket_functions = work.bra_sweep.repeat();
    const INDEX items = *count;
    for (INDEX first = (INDEX)blockIdx.x * lanes; first < items; first += (INDEX)gridDim.x * lanes) {
        const INDEX item = first + w.lane;
        const INDEX b = list[2 * first], listed = list[2 * item + 1], ket = listed < 0 ? list[2 * first + 1] : listed;
        const INDEX primitives = group_longest(ket_first[ket / BLOCK + 1] - ket_first[ket / BLOCK], w);
        work.quartet(b, ket, primitives, [&](int q) {
            return GroupKeep{out + (INDEX)q * bra_functions * ket_functions * stride + item, stride, ket_functions,
                             listed >= 0};
        }, w);
    }
}
