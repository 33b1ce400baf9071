// The part of large symmetric matrices [spin][nbf][nbf] that belongs to the `functions` of a block of groups, copied to and from
// a small matrix that stays in the cache; with `width` > 0 the rows of orbitals [spin][nbf][width]. Functions are consecutive in
// a run: from row run_row[k] to run_row[k + 1], beginning with run_ao[k].
//
// Of two runs that differ only the part left of the diagonal is touched in the large matrix; when adding, it receives both,
// for a transpose that is added later.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX s = 0; s < spins; ++s)
        for (int k = 0; k < runs; ++k)
            for (INDEX p = run_row[k]; p < run_row[k + 1]; ++p) {
                const INDEX a = run_ao[k] + p - run_row[k];
                if (width) {
                    for (INDEX i = 0; i < width; ++i)
                        local[(s * functions + p) * width + i] = large[(s * nbf + a) * width + i];
                    continue;
                }
                LOCAL *here = local + (s * functions + p) * functions, *below = local + s * functions * functions + p;
#if SCATTER
                while (__atomic_exchange_n(locks + a, 1, __ATOMIC_ACQUIRE)) {
                }
#endif
                for (int m = 0; m <= k; ++m) {
                    LARGE* there = large + (s * nbf + a) * nbf + run_ao[m] - run_row[m];
                    for (INDEX q = run_row[m]; q < run_row[m + 1]; ++q) {
#if SCATTER
                        there[q] += m < k ? here[q] + below[q * functions] : here[q];
#else
                        here[q] = there[q];
                        if (m < k) below[q * functions] = there[q];
#endif
                    }
                }
#if SCATTER
                __atomic_store_n(locks + a, 0, __ATOMIC_RELEASE);
#endif
            }
}
