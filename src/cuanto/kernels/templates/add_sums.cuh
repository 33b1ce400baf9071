// target[i] += sum i, from its two whole numbers (prelude_cuda.cuh).
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(i) {
        const INDEX* parts = (const INDEX*)sums + 2 * i;
        bool fits = true;
        for (int k = 0; k < 2; ++k) fits = fits && parts[k] < OVERFLOWN / 2 && parts[k] > -OVERFLOWN / 2;
        target[i] += fits ? parts[0] / COARSE + parts[1] / FINE : sqrt(-1.0);
    }
}
