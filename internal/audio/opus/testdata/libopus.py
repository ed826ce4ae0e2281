# Decodes packets by libopus, the reference decoder, at 16 kHz. Each comes on stdin as its length in two octets and its octets; a
# length of -1 begins another stream. For each, stdout gets the number of samples in four octets (below 0: what is wrong), the
# decoder's final range in four, and the samples.
import ctypes, struct, sys

opus = ctypes.CDLL("libopus.so.0")
opus.opus_decoder_create.restype = ctypes.c_void_p
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
sound, final, wrong = (ctypes.c_int16 * 1920)(), ctypes.c_uint32(), ctypes.c_int()
while head := read(2):
    size, = struct.unpack("<h", head)
    if size < 0:
        decoder = ctypes.c_void_p(opus.opus_decoder_create(16000, 1, ctypes.byref(wrong)))
        continue
    n = opus.opus_decode(decoder, read(size), size, sound, len(sound), 0)
    opus.opus_decoder_ctl(decoder, 4031, ctypes.byref(final))
    write(struct.pack("<iI", n, final.value) + bytes(sound)[:2 * max(n, 0)])
