// out[density][r] = scale sum_i C_ri in[density][i], C as in j_transform.h
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(item) {
        const INDEX r = item % rows;
        const double* vector = in + item / rows * columns;
        double sum = 0;
        for (int k = start[r]; k < start[r + 1]; ++k) sum = vfma(value[k], vector[index[k]], sum);
        out[item] = sum * scale;
    }
}
