// Gradient of all pairs of a range of rows, added to gradient[molecule][atom][axis], which no other call may touch.
FN void load_densities(const Frame& f, const double* D, INDEX spins, INDEX orbitals, INDEX m, const INDEX* l, Densities* P) {
    for (int lane = 0; lane < LANES; ++lane) {
        const double* D_aa = D + m * orbitals + m;
        const double* D_bb = D + l[lane] * orbitals + l[lane];
        for (int i = 0; i < NA; ++i) for (int j = 0; j < NA; ++j) {
            double sum = 0;
            for (INDEX s = 0; s < spins; ++s) sum += D_aa[(s * orbitals + i) * orbitals + j];
            P->A[i * NA + j][lane] = sum;
        }
        for (int i = 0; i < NB; ++i) for (int j = 0; j < NB; ++j) {
            double sum = 0;
            for (INDEX s = 0; s < spins; ++s) sum += D_bb[(s * orbitals + i) * orbitals + j];
            P->B[i * NB + j][lane] = sum;
        }
        for (INDEX s = 0; s < spins; ++s)
            for (int i = 0; i < NA; ++i) for (int k = 0; k < NB; ++k)
                P->X[s][i * NB + k][lane] = D[(s * orbitals + m + i) * orbitals + l[lane] + k];
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

extern "C" void ENTRY(PARAMETERS) {
    for (INDEX item = begin; item < end; ++item) {
        const INDEX molecule = item / rows;
        const int a = row_atom[item % rows];
        double* g = gradient + molecule * atoms * 3;
        Pair x;
        load_row(a, record, &x);
        for (INDEX column = first_column(triangle, a, columns, column_atom); column < columns; column += LANES) {
            const int count = load_columns(column, columns, column_atom, a, R + molecule * atoms * 3, record, pair, elements, &x);
            Frame f;
            make_frame(x.ux, x.uy, x.uz, &f);
            INDEX l[LANES];
            for (int lane = 0; lane < LANES; ++lane) l[lane] = first[column_atom[column + (lane < count ? lane : count - 1)]];
            Densities P;
            load_densities(f, D + molecule * spins * orbitals * orbitals, spins, orbitals, first[a], l, &P);
            VEC force[3];
            pair_gradient(x, f, P, int(spins), factor, Model{pm6, gaussians, mopac, bohr, hartree}, force);
            for (int lane = 0; lane < count; ++lane) {
                const int b = column_atom[column + lane];
                for (int k = 0; k < 3; ++k) {
                    g[3 * b + k] += force[k][lane];
                    g[3 * a + k] -= force[k][lane];
                }
            }
        }
    }
}
