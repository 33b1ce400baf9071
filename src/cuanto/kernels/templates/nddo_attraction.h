// Difference between the attraction to cores and that contained in G, summed for the products on the atoms of the rows.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_PAIRS(at) {
        Pair x;
        load_pair(at, atoms, R, record, pair, elements, &x);
        Frame f;
        make_frame(x.ux, x.uy, x.uz, &f);
        VEC w[VALUES], W[NA2];
        core_difference(x, false, w);
        UNROLL_REGISTERS for (int i = 0; i < NA2; ++i) W[i] = vset(0);
        UNROLL_REGISTERS for (int t = 0; t < ENTRIES; ++t) W[entry_a[t]] = w[entry_value[t]];
        rotate_products<NA, false>(f, W, 1);
        const auto sum = SUMS(attraction) + at.molecule * products + first_product[at.a];
        FOR_LANES(at.count) {
            if (at.a == at.b[lane]) continue;
            UNROLL_REGISTERS for (int i = 0; i < NA2; ++i) ADD(sum + i, -LANE(x.b[CHARGE]) * LANE(W[i]));
        }
    }
}
