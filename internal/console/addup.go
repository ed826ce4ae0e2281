package console

import (
	"slices"
	"strconv"

	"parley/internal/parley"
)

// Parts that stand on a page with their total are rounded together, so that what is shown adds up.

// addUp rounds parts to whole steps so that they add up to total, their sum rounded to a step: each is rounded down, and
// those that lost most get a step.
func addUp(total int64, parts []int64, step int64) []int64 {
	shown, lost := make([]int64, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		rest := ((p % step) + step) % step // of a negative amount too
		shown[i], lost[i] = p-rest, i
		total -= p - rest
	}
	slices.SortStableFunc(lost, func(a, b int) int { return int(parts[b] - shown[b] - parts[a] + shown[a]) })
	for _, i := range lost {
		if total <= 0 {
			break
		}
		shown[i] += step
		total -= step
	}
	return shown
}

// rounded is an amount to the nearest step, half a step away from zero.
func rounded(n, step int64) int64 {
	if n < 0 {
		return -rounded(-n, step)
	}
	return (n + step/2) / step * step
}

// together are parts of a total to the step; what of the total is in no part counts as one more.
func together(total int64, parts []int64, step int64) []int64 {
	rest := total
	for _, p := range parts {
		rest -= p
	}
	return addUp(rounded(total, step), append(slices.Clone(parts), rest), step)[:len(parts)]
}

// costTexts are the parts of a cost as they add up to dollars(total): to the cent, or exact where the total is less.
func costTexts(total parley.Money, parts []parley.Money) []string {
	const cent = parley.USD / 100
	texts, raw := make([]string, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		raw[i] = int64(p)
	}
	if total <= -cent || total >= cent {
		raw = together(int64(total), raw, int64(cent))
	}
	for i, p := range raw {
		texts[i] = exact(parley.Money(p))
	}
	return texts
}

// minuteTexts are seconds in minutes to a tenth, as they add up to minutesText(total).
func minuteTexts(total int64, seconds []int64) []string {
	texts := make([]string, len(seconds))
	for i, s := range together(total, seconds, 6) {
		texts[i] = strconv.FormatFloat(float64(s)/60, 'f', 1, 64)
	}
	return texts
}

// sumsTexts are the minutes and costs of rows, as they add up to those of their total.
func sumsTexts(total *parley.Sums, rows []*parley.Sums) (minutes, costs []string) {
	seconds, money := make([]int64, len(rows)), make([]parley.Money, len(rows))
	for i, s := range rows {
		seconds[i], money[i] = s.Seconds(), s.Cost()
	}
	return minuteTexts(total.Seconds(), seconds), costTexts(total.Cost(), money)
}

// dayCosts are the costs of days as they add up to that of all.
func dayCosts(total *parley.Sums, days []parley.Sums) []string {
	money := make([]parley.Money, len(days))
	for i := range days {
		money[i] = days[i].Cost()
	}
	return costTexts(total.Cost(), money)
}
