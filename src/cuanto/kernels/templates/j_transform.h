// out[density][r][c] = scale sum_ij C_ri C_cj (in[density][i][j] + in[density][j][i]) with the nonzero elements of C by
// rows: those of row r are value[start[r]] .. value[start[r + 1] - 1], in the columns index[...].
KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    FOR_TEAMS(item) {
        const INDEX r = item % rows;
        const double* matrix = in + item / rows * columns * columns;
        FOR_MEMBERS(j, 0, columns) {
            double sum = 0;
            for (int k = start[r]; k < start[r + 1]; ++k)
                sum = vfma(value[k], matrix[index[k] * columns + j] + matrix[j * columns + index[k]], sum);
            scratch[j] = sum * scale;
        }
        BARRIER;
        FOR_MEMBERS(c, 0, rows) {
            double sum = 0;
            for (int k = start[c]; k < start[c + 1]; ++k) sum = vfma(value[k], scratch[index[k]], sum);
            out[item * rows + c] = sum;
        }
        BARRIER;
    }
}
