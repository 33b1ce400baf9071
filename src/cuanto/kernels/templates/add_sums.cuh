// target[i] += sum i, from its two whole numbers (prelude_cuda.cuh).
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(i) {
        const INDEX *parts = (const INDEX*)sums + 2 * i, coarse = parts[0];
        const bool fits = coarse < OVERFLOWN / 2 && coarse > -OVERFLOWN / 2;
        target[i] += fits ? coarse / COARSE + parts[1] / FINE : sqrt(-1.0);
    }
}
