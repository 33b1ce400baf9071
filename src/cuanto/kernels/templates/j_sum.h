// Sum of the potentials of all jobs with the same bras; those after the first `plus` ones are subtracted.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(i) {
        double sum = 0;
        for (INDEX part = 0; part < parts; ++part) sum += part < plus ? potentials[part * size + i] : -potentials[part * size + i];
        V[i] = sum;
    }
}
