// Schwarz bounds sqrt |(ab|ab)| of all kets, by a kernel for lists; pairs have the same numbers as bras and as kets.

extern "C" void ENTRY(PARAMETERS) {
    const INDEX size = columns * functions * functions;
    VEC* integrals = (VEC*)digest_workspace.ask(size * sizeof(VEC));
    for (INDEX ket = begin; ket < end; ++ket) {
        const int list[2] = {pair[ket], (int)(ket / LANES * LANES)};
        ((Kernel)kernel)(sides, tables, list, 1, (REAL*)integrals);
        const VEC* block = integrals + column[ket] * functions * functions;
        double largest = 0;
        for (INDEX f = 0; f < functions; ++f) {
            const double x = block[f * (functions + 1)][ket % LANES];
            largest = x > largest ? x : largest;
        }
        bound[ket] = __builtin_sqrt(largest);
    }
}
