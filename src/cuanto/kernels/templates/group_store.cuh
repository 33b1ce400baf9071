// Any class of integrals from index tables on the GPU: all bras with all kets, into one matrix.

struct GroupStore {
    BraRows rows;
    const int* cols;
    INDEX kets;
    REAL* out;
    INDEX row_stride, pass_stride;
    int ket_step;
    bool wanted;
    FN void operator()(int4 head, int ket, REAL value, int pass, const Workers&) const {
        if (wanted && rows.written(head.w))
            out[pass * pass_stride + rows[head.w] * row_stride + cols[(ket + pass * ket_step) * kets]] = value;
    }
};

KERNEL(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ REAL shared_memory[];
    const Workers w = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes, (int)blockDim.x / lanes};
    const Sides sides = SIDES;
    const Tables tables = TABLES;
    REAL* memory = scratch_stride ? scratch + blockIdx.x * scratch_stride : shared_memory;
    const GroupWork work = group_work(sides, tables, slots, memory, w);
    const Program& last = work.bra_sweep;
    const INDEX blocks = (kets + lanes - 1) / lanes;
    for (INDEX item = blockIdx.x; item < blocks * (end - begin); item += gridDim.x) {
        const INDEX b = begin + item / blocks;
        const INDEX ket = item % blocks * lanes + w.lane;
        const INDEX primitives = ket_first[ket / BLOCK + 1] - ket_first[ket / BLOCK];
        work.quartet(b, ket, primitives, [&](int q) {
            const BraRows mine(rows + (b * columns + q) * bra_functions, bra_functions);
            return GroupStore{mine, cols + ket, kets, out, row_stride,
                              last.component_step() * component_stride, last.ket_step(), ket < kets};
        }, w);
    }
}
