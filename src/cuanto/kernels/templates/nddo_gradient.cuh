// Gradient of a pair per thread, added to gradient[molecule][atom][axis].
FN void load_densities(const Frame& f, const double* D, INDEX spins, INDEX orbitals, INDEX m, INDEX l, Densities* P) {
    const double* D_aa = D + m * orbitals + m;
    const double* D_bb = D + l * orbitals + l;
    for (int i = 0; i < NA * NA; ++i) P->A[i] = 0;
    for (int i = 0; i < NB * NB; ++i) P->B[i] = 0;
    for (INDEX s = 0; s < spins; ++s) {
        for (int i = 0; i < NA; ++i) for (int j = 0; j < NA; ++j) P->A[i * NA + j] += D_aa[(s * orbitals + i) * orbitals + j];
        for (int i = 0; i < NB; ++i) for (int j = 0; j < NB; ++j) P->B[i * NB + j] += D_bb[(s * orbitals + i) * orbitals + j];
        for (int i = 0; i < NA; ++i) for (int k = 0; k < NB; ++k) P->X[s][i * NB + k] = D[(s * orbitals + m + i) * orbitals + l + k];
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

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    PAIR_OF_THREAD
    Pair x;
    load_pair(molecule, a, b, atoms, R, record, pair, elements, &x);
    Frame f;
    make_frame(x.ux, x.uy, x.uz, &f);
    Densities P;
    load_densities(f, D + molecule * spins * orbitals * orbitals, spins, orbitals, first[a], first[b], &P);
    VEC force[3];
    pair_gradient(x, f, P, int(spins), factor, Model{pm6, gaussians, mopac, bohr, hartree}, force);
    double* g = gradient + molecule * atoms * 3;
    for (int k = 0; k < 3; ++k) {
        atomicAdd(g + 3 * b + k, force[k]);
        atomicAdd(g + 3 * a + k, -force[k]);
    }
}
