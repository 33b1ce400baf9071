// Blocks begin .. end; `scratch` has room for the distances of one vector of points to all atoms of a list, which are made
// when they are first asked for: most lists are left long before their end.
struct Lazy {
    REAL* values;
    unsigned char* made;
    const int* list;
    const REAL* atom;
    VEC x, y, z;
    FN_MEMBER VEC operator()(int k) const {
        if (!made[k]) {
            made[k] = 1;
            const REAL* R = atom + 3 * list[k];
            const VEC dx = x - R[0], dy = y - R[1], dz = z - R[2];
            vstore(values + k * LANES, vsqrt(dx * dx + dy * dy + dz * dz));
        }
        return vload(values + k * LANES);
    }
};

extern "C" void ENTRY(PARAMETERS) {
    unsigned char* made = (unsigned char*)(scratch + LANES * atoms);
    for (INDEX block = begin; block < end; ++block) {
        const INDEX list = block_list[block], first = list * atoms;
        for (INDEX g = block_point[block]; g < block_point[block + 1]; g += LANES) {
            REAL x[LANES], y[LANES], z[LANES], w[LANES], mine[LANES];
            const INDEX left = block_point[block + 1] - g;
            for (int lane = 0; lane < LANES; ++lane) {
                const INDEX at = g + (lane < left ? lane : left - 1);
                x[lane] = position[at], y[lane] = position[stride + at], z[lane] = position[2 * stride + at];
                mine[lane] = own[at];
            }
            for (int k = 0; k < list_count[list]; ++k) made[k] = 0;
            const Lazy r{scratch, made, list_atom + first, atom, vload(x), vload(y), vload(z)};
            const VEC share = own_share(list_rows[list], list_count[list], list_atom + first, list_distance + first,
                                        radius[list], vload(mine), atoms, pair, r);
            vstore(w, share);
            for (int lane = 0; lane < LANES && lane < left; ++lane) weight[g + lane] *= w[lane];
        }
    }
}
