// Straight-line kernels on the GPU: a list of (bra, ket), results [column, bra function, ket function, item].

struct ThreadKeep {
    REAL* out;  // of this item and column
    INDEX stride;
    FN void operator()(int, int bra, int ket, REAL value) const { out[(bra * KET_FUNCTIONS + ket) * stride] = value; }
};

extern "C" __global__ void __launch_bounds__(128) ENTRY(PARAMETERS) {
    const Sides sides = {bra_first, bra_record, bra_coefficient, columns, bra_shell, ket_first, ket_record, ket_shell, boys_table, CUTOFF};
    const INDEX items = *count;
    for (INDEX item = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; item < items; item += (INDEX)gridDim.x * blockDim.x) {
        const INDEX b = list[2 * item], ket = list[2 * item + 1];
        if (ket < 0) continue;
        thread_quartet(sides, b, ket, [&](int q) {
            return ThreadKeep{out + (INDEX)q * BRA_FUNCTIONS * KET_FUNCTIONS * stride + item, stride};
        });
    }
}
