// Straight-line kernels on the GPU: one ket per thread, a warp shares its bra. Included behind the generated functions
// primitive() and contracted(). COLUMNS contraction columns are summed at once; more columns take more passes.

struct ThreadStore {
    const INDEX* rows;
    REAL* out;
    INDEX row_stride, component_stride;
    FN void operator()(int component, int bra, int ket, REAL value) const {
        const INDEX row = rows[bra];
        if (row >= 0) out[component * component_stride + row * row_stride + ket] = value;
    }
};

extern "C" __global__ void __launch_bounds__(128) ENTRY(PARAMETERS) {
    const INDEX item = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX b = bra_begin + item / ket_stride;
    const INDEX ket = item % ket_stride;
    if (b >= bra_end || ket >= kets) return;
    const REAL* shell = shell_record + b * SHELL_FIELDS;
    for (int q0 = 0; q0 < columns; q0 += COLUMNS) {
        REAL acc[COLUMNS][WIDTH];
        for (int q = 0; q < COLUMNS; ++q)
            for (int j = 0; j < WIDTH; ++j) acc[q][j] = 0;
        for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
            REAL coefficient[COLUMNS];
            for (int q = 0; q < COLUMNS; ++q)
                coefficient[q] = q0 + q < columns ? bra_coefficient[k * columns + q0 + q] : REAL(0);
            for (INDEX c = 0; c < ket_primitives; ++c) {
                REAL value[WIDTH];
                primitive(bra_record + k * BRA_FIELDS, ket_record + c * KET_FIELDS * ket_stride + ket, ket_stride,
                          boys_table, value);
                for (int q = 0; q < COLUMNS; ++q)
                    for (int j = 0; j < WIDTH; ++j) acc[q][j] = vfma(coefficient[q], value[j], acc[q][j]);
            }
        }
        for (int q = 0; q < COLUMNS; ++q)
            if (q0 + q < columns)
                contracted(shell, acc[q],
                           ThreadStore{rows + (b * columns + q0 + q) * BRA_FUNCTIONS, out + cols[ket], row_stride,
                                       component_stride});
    }
}
