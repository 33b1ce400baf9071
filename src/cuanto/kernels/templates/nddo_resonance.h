// Core Hamiltonian between two atoms: (beta_i + beta_k)/2 S_ik.
FN constexpr int shell_of(int i) { return i == 0 ? 0 : i < 4 ? 1 : 2; }

FN void resonance(const Pair& x, const Frame& f, bool mopac, VEC* h) {
    local_overlap<VEC>(x.R, x.a, x.b, mopac, h);
    UNROLL for (int i = 0; i < NA; ++i) rotate_orbitals<NB, false>(f, h + i * NB, 1);
    UNROLL for (int k = 0; k < NB; ++k) rotate_orbitals<NA, false>(f, h + k, NB);
    UNROLL for (int i = 0; i < NA; ++i) UNROLL for (int k = 0; k < NB; ++k) {
        const VEC beta = x.a[BETA + shell_of(i)] + x.b[BETA + shell_of(k)];
        h[i * NB + k] = h[i * NB + k] * beta * REAL(0.5);
    }
}
