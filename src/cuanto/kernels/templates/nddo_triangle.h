// Columns of the same kind that come later only.
FN INDEX first_column(int triangle, int a, INDEX columns, const int* column_atom) {
    INDEX low = 0, high = triangle ? columns : 0;
    while (low < high) {
        const INDEX middle = (low + high) / 2;
        if (column_atom[middle] > a) high = middle;
        else low = middle + 1;
    }
    return low;
}
