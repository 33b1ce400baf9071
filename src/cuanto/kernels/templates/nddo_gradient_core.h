// Gradient of 2 sum_ik P_ik (beta_i + beta_k)/2 S_ik and of the core repulsion.
FN void pair_gradient(const Pair& x, const Frame& f, const Densities& P, int spins, REAL factor, Model model, VEC* force) {
    Densities dx, dy;
    rotated(0, P, spins, &dx);
    rotated(1, P, spins, &dy);
    Dual S[NA * NB];
    local_overlap<Dual>(Dual{x.R, vset(1)}, x.a, x.b, model.mopac != 0, S);
    const Dual core = core_repulsion<Dual>(Dual{x.R, vset(1)}, x.a, x.b, x.pair, model);
    VEC along = core.d, by_x = vset(0), by_y = vset(0);
    SHORT_LOOP for (int i = 0; i < NA; ++i) SHORT_LOOP for (int k = 0; k < NB; ++k) {
        const VEC beta = x.a[BETA + shell_of(i)] + x.b[BETA + shell_of(k)];
        for (int s = 0; s < spins; ++s) {
            along = along + beta * S[i * NB + k].d * P.X[s][i * NB + k];
            by_x = by_x + beta * S[i * NB + k].v * dx.X[s][i * NB + k];
            by_y = by_y + beta * S[i * NB + k].v * dy.X[s][i * NB + k];
        }
    }
    to_molecule(x, f, along, by_x, by_y, force);
}
