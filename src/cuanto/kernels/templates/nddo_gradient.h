// Derivatives of a pair's energy at fixed density. Along the bond they are those of the local integrals; across it the
// frame rotates, z' = z + theta x and x' = x - theta z, and the densities with it: P -> P + theta (G P + P G^T).
// `which`: 0 rotates towards x, 1 towards y. G of the p and d functions of one shell each, out_i = sum_k G_ik in_k.
template <int ORBITALS> FN void rotation(int which, const VEC* in, VEC* out, INDEX step) {
    UNROLL for (int i = 0; i < ORBITALS; ++i) out[i * step] = vset(0);
    if (ORBITALS == 1) return;
    const int x = which == 0 ? 1 : 2;
    out[x * step] = -in[3 * step];
    out[3 * step] = in[x * step];
    if (ORBITALS < 9) return;
    const REAL root = REAL(1.7320508075688772);
    const VEC d2 = in[4 * step], xz = in[5 * step], z2 = in[6 * step], yz = in[7 * step], xy = in[8 * step];
    if (which == 0) {
        out[4 * step] = -xz;
        out[5 * step] = d2 - root * z2;
        out[6 * step] = root * xz;
        out[7 * step] = xy;
        out[8 * step] = -yz;
    } else {
        out[4 * step] = yz;
        out[5 * step] = xy;
        out[6 * step] = root * yz;
        out[7 * step] = -d2 - root * z2;
        out[8 * step] = -xz;
    }
}

// Into the molecular frame: dE/dR_B of the derivative along z and those by the two angles; A has the opposite.
FN void to_molecule(const Pair& x, const Frame& f, VEC along, VEC by_x, VEC by_y, VEC* force) {
    const VEC step = vrcp(x.R);
    UNROLL for (int k = 0; k < 3; ++k) force[k] = f.Q[0][k] * (by_x * step) + f.Q[1][k] * (by_y * step) + f.Q[2][k] * along;
}

#if LARGEST > 4
#define SHORT_LOOP NO_UNROLL
#else
#define SHORT_LOOP UNROLL
#endif

// Densities of a pair in the local frame.
struct Densities {
    VEC A[NA * NA], B[NB * NB], X[2][NA * NB];  // of atom A, of atom B (both spins), between them (each spin)
};

FN void rotated(int which, const Densities& P, int spins, Densities* out) {
    VEC half[NA * NA + NB * NB + NA * NB];
    SHORT_LOOP for (int j = 0; j < NA; ++j) rotation<NA>(which, P.A + j, half + j, NA);
    SHORT_LOOP for (int i = 0; i < NA; ++i) SHORT_LOOP for (int j = 0; j < NA; ++j) out->A[i * NA + j] = half[i * NA + j] + half[j * NA + i];
    SHORT_LOOP for (int j = 0; j < NB; ++j) rotation<NB>(which, P.B + j, half + j, NB);
    SHORT_LOOP for (int i = 0; i < NB; ++i) SHORT_LOOP for (int j = 0; j < NB; ++j) out->B[i * NB + j] = half[i * NB + j] + half[j * NB + i];
    for (int s = 0; s < spins; ++s) {
        SHORT_LOOP for (int k = 0; k < NB; ++k) rotation<NA>(which, P.X[s] + k, out->X[s] + k, NB);
        SHORT_LOOP for (int i = 0; i < NA; ++i) rotation<NB>(which, P.X[s] + i * NB, half + i * NB, 1);
        SHORT_LOOP for (int i = 0; i < NA * NB; ++i) out->X[s][i] = out->X[s][i] + half[i];
    }
}
