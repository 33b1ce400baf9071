// Straight-line kernels on the GPU: one ket per thread, a warp shares its bra. Included behind the generated functions
// primitive() and contracted(). COLUMNS contraction columns are summed at once; more columns take more passes.

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
    const INDEX b = bra_begin + item / padded;
    const INDEX ket = item % padded, block = ket / BLOCK, lane = ket % BLOCK;
    if (b >= bra_end || ket >= kets) return;
    const REAL* shell = bra_shell + b * SHELL_FIELDS;
    for (int q0 = 0; q0 < columns; q0 += COLUMNS) {
        REAL acc[COLUMNS][WIDTH];
        for (int q = 0; q < COLUMNS; ++q)
            for (int j = 0; j < WIDTH; ++j) acc[q][j] = 0;
        for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
            REAL coefficient[COLUMNS];
            for (int q = 0; q < COLUMNS; ++q)
                coefficient[q] = q0 + q < columns ? bra_coefficient[k * columns + q0 + q] : REAL(0);
            for (INDEX c = ket_first[block]; c < ket_first[block + 1]; ++c) {
                REAL value[WIDTH];
                primitive(bra_record + k * BRA_FIELDS, ket_record + c * KET_FIELDS * BLOCK + lane, boys_table, value);
                for (int q = 0; q < COLUMNS; ++q)
                    for (int j = 0; j < WIDTH; ++j) acc[q][j] = vfma(coefficient[q], value[j], acc[q][j]);
            }
        }
        for (int q = 0; q < COLUMNS; ++q)
            if (q0 + q < columns)
                contracted(shell, ket_shell + block * SHELL_FIELDS * BLOCK + lane, acc[q],
                           ThreadStore{rows + (b * columns + q0 + q) * BRA_FUNCTIONS, cols + ket, kets, out, row_stride,
                                       component_stride});
    }
}
