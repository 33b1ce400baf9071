// Sum of the potentials of all jobs with the same bras.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(i) {
        double sum = 0;
        for (INDEX part = 0; part < parts; ++part) sum += potentials[part * size + i];
        V[i] = sum;
    }
}
