// One pair of atoms (on a CPU: as many as a vector has lanes), z from A to B.
struct Pair {
    VEC a[FIELDS], b[FIELDS], pair[PAIR_FIELDS], ux, uy, uz, R;
};
