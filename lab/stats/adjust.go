package stats

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Adjust removes from each y the part that a linear regression (least squares)
// on its covariates x explains: it returns what y would be with all covariates
// 0. Every x has the same number of covariates. A covariate that does not vary
// is left out. With fewer than 5 values for each covariate, all are left out.
func Adjust(y []float64, x [][]float64) ([]float64, error) {
	if len(y) != len(x) {
		return nil, errors.New("adjust values: each needs its covariates")
	}
	adjusted := append([]float64(nil), y...)
	if err := finite(y); err != nil || len(y) == 0 {
		return adjusted, err
	}
	var used []int
	for c := range x[0] {
		if column := mat.Col(nil, c, mat.NewDense(len(x), len(x[0]), slices.Concat(x...))); stat.Variance(column, nil) > 1e-9 {
			used = append(used, c)
		}
	}
	if len(used) == 0 || len(y) < 5*(len(used)+1) {
		return adjusted, nil
	}
	design := mat.NewDense(len(y), len(used)+1, nil)
	for i := range y {
		design.Set(i, 0, 1)
		for k, c := range used {
			design.Set(i, k+1, x[i][c])
		}
	}
	var slopes mat.VecDense
	if err := slopes.SolveVec(design, mat.NewVecDense(len(y), append([]float64(nil), y...))); err != nil {
		return adjusted, nil // the covariates are linearly dependent
	}
	for i := range y {
		for k, c := range used {
			adjusted[i] -= slopes.AtVec(k+1) * x[i][c]
		}
		if math.IsNaN(adjusted[i]) || math.IsInf(adjusted[i], 0) {
			return append([]float64(nil), y...), nil
		}
	}
	return adjusted, nil
}
