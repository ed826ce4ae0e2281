package audio

var vadThreshold float32 = 0

var vadIn [vadHidden][vadInputs + 1]float32
var vadOut [vadHidden + 1]float32
