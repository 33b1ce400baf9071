// Blocks with d functions are rotated where they lie, in G: no thread has room for them.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    PAIR_OF_THREAD
    const bool own = a >= atom_begin && a < atom_end, others = b >= atom_begin && b < atom_end;
    Pair x;
    load_pair(molecule, a, b, atoms, R, record, pair, elements, &x);
    Frame f;
    make_frame(x.ux, x.uy, x.uz, &f);
    double* G_mol = G + molecule * products * products - INDEX(first_product[atom_begin]) * products;
    const INDEX p = first_product[a], q = first_product[b];
    double* direct = G_mol + p * products + q;
    double* turned = G_mol + q * products + p;
    VEC w[VALUES];
    local_repulsion(x.R, x.a, x.b, false, w);
#if NA > 4
    // W[i][k] at i * by_a + k * by_b
    double* W = own ? direct : turned;
    const INDEX by_a = own ? products : 1, by_b = own ? 1 : products;
    for (int i = 0; i < NA2; ++i)
        for (int k = 0; k < NB2; ++k) W[i * by_a + k * by_b] = 0;
    for (int t = 0; t < ENTRIES; ++t) W[entry_a[t] * by_a + entry_b[t] * by_b] = w[entry_value[t]];
    for (int i = 0; i < NA2; ++i) rotate_products<NB, false>(f, W + i * by_a, by_b);
    for (int k = 0; k < NB2; ++k) rotate_products<NA, false>(f, W + k * by_b, by_a);
    if (own && others)
        for (int k = 0; k < NB2; ++k)
            for (int i = 0; i < NA2; ++i) turned[k * products + i] = W[i * by_a + k * by_b];
#else
    VEC W[NA2 * NB2];
    UNROLL for (int i = 0; i < NA2 * NB2; ++i) W[i] = 0;
    UNROLL for (int t = 0; t < ENTRIES; ++t) W[entry_a[t] * NB2 + entry_b[t]] = w[entry_value[t]];
    UNROLL for (int i = 0; i < NA2; ++i) rotate_products<NB, false>(f, W + i * NB2, 1);
    UNROLL for (int k = 0; k < NB2; ++k) rotate_products<NA, false>(f, W + k, NB2);
    if (own)
        UNROLL for (int i = 0; i < NA2; ++i) UNROLL for (int k = 0; k < NB2; ++k) direct[i * products + k] = W[i * NB2 + k];
    if (others)
        UNROLL for (int k = 0; k < NB2; ++k) UNROLL for (int i = 0; i < NA2; ++i) turned[k * products + i] = W[i * NB2 + k];
#endif
}
