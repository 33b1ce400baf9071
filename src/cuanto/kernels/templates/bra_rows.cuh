// The rows of a bra's functions in the result. A pair of a shell with itself has each row twice, with values that may differ
// in the last digit: one of the two is written, always the same.
struct BraRows {
    const INDEX* rows;
    int side;  // functions of each shell; 0 if the shells of the pair differ

    FN BraRows(const INDEX* rows, int functions) : rows(rows), side((int)(sqrt((double)functions) + 0.5)) {
        if (side * side != functions) side = 0;
    }
    FN_MEMBER INDEX operator[](int f) const { return rows[f]; }
    FN_MEMBER bool written(int f) const {
        const int twin = side ? f % side * side + f / side : f;
        return f <= twin || rows[twin] != rows[f];
    }
};
