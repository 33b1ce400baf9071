// G of all pairs, with the rows of the atoms atom_begin to atom_end. On a GPU, blocks with d functions are rotated in
// place in G because they do not fit into the registers of a thread.
#define IN_PLACE (LANES == 1 && NA > 4)
#if IN_PLACE
#define BLOCK_LOOP
#else
#define BLOCK_LOOP UNROLL_REGISTERS
#endif

KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_PAIRS(at) {
        Pair x;
        load_pair(at, atoms, R, record, pair, elements, &x);
        Frame f;
        make_frame(x.ux, x.uy, x.uz, &f);
        VEC w[VALUES];
        local_repulsion(x.R, x.a, x.b, false, w);
        double* G_mol = G + at.molecule * products * products - INDEX(first_product[atom_begin]) * products;
        const INDEX p = first_product[at.a];
        const bool own = at.a >= atom_begin && at.a < atom_end;
#if IN_PLACE
        const INDEX by_a = own ? products : 1, by_b = own ? 1 : products;
        double* W = G_mol + p * by_a + first_product[at.b[0]] * by_b;
#else
        const INDEX by_a = NB2, by_b = 1;
        VEC W[NA2 * NB2];
#endif
        BLOCK_LOOP for (int i = 0; i < NA2; ++i) BLOCK_LOOP for (int k = 0; k < NB2; ++k) W[i * by_a + k * by_b] = vset(0);
        BLOCK_LOOP for (int t = 0; t < ENTRIES; ++t) W[entry_a[t] * by_a + entry_b[t] * by_b] = w[entry_value[t]];
        BLOCK_LOOP for (int i = 0; i < NA2; ++i) rotate_products<NB, false>(f, W + i * by_a, by_b);
        BLOCK_LOOP for (int k = 0; k < NB2; ++k) rotate_products<NA, false>(f, W + k * by_b, by_a);
        FOR_LANES(at.count) {
            const INDEX q = first_product[at.b[lane]];
            if (own && !IN_PLACE)
                BLOCK_LOOP for (int i = 0; i < NA2; ++i) BLOCK_LOOP for (int k = 0; k < NB2; ++k)
                    G_mol[(p + i) * products + q + k] = LANE(W[i * by_a + k * by_b]);
            if (at.b[lane] >= atom_begin && at.b[lane] < atom_end && (own || !IN_PLACE))
                BLOCK_LOOP for (int k = 0; k < NB2; ++k) BLOCK_LOOP for (int i = 0; i < NA2; ++i)
                    G_mol[(q + k) * products + p + i] = LANE(W[i * by_a + k * by_b]);
        }
    }
}
