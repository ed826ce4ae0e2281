package opus

// Constants of the format, RFC 6716, section 4.3, for frames of 20 ms and one channel.

const (
	allBands    = 21 // of the tables: up to 20 kHz
	bands       = 17 // that we code: up to 8 kHz
	shorts      = 8  // short transforms in a frame (2 to the power of logShorts)
	logShorts   = 3
	eighth      = 3 // bits are counted in eighths: a bit is 1<<eighth
	maxFine     = 8 // bits of fine energy in a band
	fineOffset  = 21
	thetaOffset = 4
)

// edges are where bands begin, in bins of a short transform of 2.5 ms (table 55).
var edges = [allBands + 1]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 34, 40, 48, 60, 78, 100}

// shares are how bits are spread over bands, in 1/32 bit a bin, from the poorest to the richest frame (table 57).
var shares = [...][bands]int{
	{},
	{90, 80, 75, 69, 63, 56, 49, 40, 34, 29, 20, 18, 10},
	{110, 100, 90, 84, 78, 71, 65, 58, 51, 45, 39, 32, 26, 20, 12},
	{118, 110, 103, 93, 86, 80, 75, 70, 65, 59, 53, 47, 40, 31, 23, 15, 4},
	{126, 119, 112, 104, 95, 89, 83, 78, 72, 66, 60, 54, 47, 39, 32, 25, 17},
	{134, 127, 120, 114, 103, 97, 91, 85, 78, 72, 66, 60, 54, 47, 41, 35, 29},
	{144, 137, 130, 124, 113, 107, 101, 95, 88, 82, 76, 70, 64, 57, 51, 45, 39},
	{152, 145, 138, 132, 123, 117, 111, 105, 98, 92, 86, 80, 74, 67, 61, 55, 49},
	{162, 155, 148, 142, 133, 127, 121, 115, 108, 102, 96, 90, 84, 77, 71, 65, 59},
	{172, 165, 158, 152, 143, 137, 131, 125, 118, 112, 106, 100, 94, 87, 81, 75, 69},
	{200, 200, 200, 200, 200, 200, 200, 200, 198, 193, 188, 183, 178, 173, 168, 163, 158},
}

// limits are the most that a band can use, as the format counts it.
var limits = [bands]int{193, 193, 193, 193, 193, 193, 193, 193, 193, 193, 193, 193, 194, 194, 194, 184, 184}

// logWidths are the logarithms of the bands' widths at 2.5 ms, in 1/8.
var logWidths = [bands]int{0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 21, 21}

// means are what the bands' energies are told against, in powers of two.
var means = [bands]float32{6.4375, 6.25, 5.75, 5.3125, 5.0625, 4.8125, 4.5, 4.375, 4.875, 4.6875, 4.5625, 4.4375,
	4.875, 4.625, 4.3125, 4.5, 4.375}

// steps are the distributions of the coarse energy's steps, as the likelihood of none and how the others decay: of a
// frame that builds on the one before it, and of one that doesn't.
var steps = [2][bands][2]uint32{
	{{42, 121}, {96, 66}, {108, 43}, {111, 40}, {117, 44}, {123, 32}, {120, 36}, {119, 33}, {127, 33}, {134, 34},
		{139, 21}, {147, 23}, {152, 20}, {158, 25}, {154, 26}, {166, 21}, {173, 16}},
	{{22, 178}, {63, 114}, {74, 82}, {84, 83}, {92, 82}, {103, 62}, {96, 72}, {96, 67}, {101, 73}, {107, 72},
		{113, 55}, {118, 52}, {125, 52}, {118, 52}, {117, 55}, {135, 49}, {137, 39}},
}

// Of the coarse energy: how much of the former frame's is expected again, and how much of the band's below is not.
const (
	energyAgain = 16384.0 / 32768
	energyFade  = 6554.0 / 32768
	intraFade   = 4915.0 / 32768
)

// Cumulative distributions, from above.
var (
	smallStep = []uint8{2, 1, 0}
	spreads   = []uint8{25, 23, 2, 0}
	trims     = []uint8{126, 124, 119, 109, 87, 41, 19, 9, 4, 2, 0}
)

const (
	spread = 2 // how far pulses are spread over their band: as usual
	tilt   = 5 // how bits are moved between low and high bands: not at all
)
