// Gradient of all pairs, added to gradient[molecule][atom][axis].
FN void load_densities(const Pairs& at, const Frame& f, const double* D, INDEX spins, INDEX orbitals, const int* first, Densities* P) {
    const INDEX m = first[at.a];
    FOR_LANES(LANES) {
        const INDEX l = first[at.b[lane]];
        const double* D_aa = D + m * orbitals + m;
        const double* D_bb = D + l * orbitals + l;
        for (int i = 0; i < NA; ++i) for (int j = 0; j < NA; ++j) {
            double sum = 0;
            for (INDEX s = 0; s < spins; ++s) sum += D_aa[(s * orbitals + i) * orbitals + j];
            LANE(P->A[i * NA + j]) = sum;
        }
        for (int i = 0; i < NB; ++i) for (int j = 0; j < NB; ++j) {
            double sum = 0;
            for (INDEX s = 0; s < spins; ++s) sum += D_bb[(s * orbitals + i) * orbitals + j];
            LANE(P->B[i * NB + j]) = sum;
        }
        for (INDEX s = 0; s < spins; ++s)
            for (int i = 0; i < NA; ++i) for (int k = 0; k < NB; ++k)
                LANE(P->X[s][i * NB + k]) = D[(s * orbitals + m + i) * orbitals + l + k];
    }
    for (int i = 0; i < NA; ++i) rotate_orbitals<NA, true>(f, P->A + i * NA, 1);
    for (int i = 0; i < NA; ++i) rotate_orbitals<NA, true>(f, P->A + i, NA);
    for (int i = 0; i < NB; ++i) rotate_orbitals<NB, true>(f, P->B + i * NB, 1);
    for (int i = 0; i < NB; ++i) rotate_orbitals<NB, true>(f, P->B + i, NB);
    for (INDEX s = 0; s < spins; ++s) {
        for (int i = 0; i < NA; ++i) rotate_orbitals<NB, true>(f, P->X[s] + i * NB, 1);
        for (int k = 0; k < NB; ++k) rotate_orbitals<NA, true>(f, P->X[s] + k, NB);
    }
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_PAIRS(at) {
        Pair x;
        load_pair(at, atoms, R, record, pair, elements, &x);
        Frame f;
        make_frame(x.ux, x.uy, x.uz, &f);
        Densities P;
        load_densities(at, f, D + at.molecule * spins * orbitals * orbitals, spins, orbitals, first, &P);
        VEC force[3];
        pair_gradient(x, f, P, int(spins), factor, Model{pm6, gaussians, extras, mopac, bohr, hartree}, force);
        const auto g = SUMS(gradient) + at.molecule * atoms * 3;
        FOR_LANES(at.count) for (int k = 0; k < 3; ++k) {
            ADD(g + 3 * at.b[lane] + k, LANE(force[k]));
            ADD(g + 3 * at.a + k, -LANE(force[k]));
        }
    }
}
