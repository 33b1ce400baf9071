// Straight-line kernels on the GPU: all bras with all kets, a warp shares its bra.

struct ThreadStore {
    const INDEX* rows;
    const int* cols;
    INDEX kets;
    REAL* out;
    INDEX row_stride, component_stride;
    FN void operator()(int component, int bra, int ket, REAL value) const {
        out[component * component_stride + rows[bra] * row_stride + cols[ket * kets]] = value;
    }
};

extern "C" __global__ void __launch_bounds__(128) ENTRY(PARAMETERS) {
    const INDEX item = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX padded = (kets + BLOCK - 1) / BLOCK * BLOCK;
    const INDEX b = begin + item / padded, ket = item % padded;
    if (b >= end || ket >= kets) return;
    const Sides sides = {bra_first, bra_record, bra_coefficient, columns, bra_shell, ket_first, ket_record, ket_shell, boys_table, CUTOFF};
    thread_quartet(sides, b, ket, [&](int q) {
        return ThreadStore{rows + (b * columns + q) * BRA_FUNCTIONS, cols + ket, kets, out, row_stride, component_stride};
    });
}
