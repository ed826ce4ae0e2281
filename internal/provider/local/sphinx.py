# The nursery of recognizers. It loads libpocketsphinx with the model in the directory argv[1] once, and forks for every ear, so that a
# further one is there in milliseconds and has little memory of its own.
#
# Descriptor 3 is a SOCK_SEQPACKET socket. Out: "ready". In: "open N" with the descriptor of a stream, or "kill N"; its end ends everything.
# An ear's stream takes b"a" (sound) or b"e" (the utterance is over), a length of four octets, and so much 16-bit PCM at 16 kHz, all
# little-endian; it answers each with a line, the text of the utterance so far.
import ctypes
import gc
import os
import resource
import signal
import socket
import struct
import sys


# The cepstral mean that a decoder begins with: what four voices have on average after G.711 and the way up to 16 kHz. The library takes
# the mean of the first utterance alone for the second one, which after a short one is far off.
MEAN = (52, 8, 4, 21, 11, -10, 18, -13, -6, 7, -8, 15, -4)
MEAN_FRAMES = 200  # what it weighs: two seconds


def prime(lib, decoder):
    row = ctypes.c_float * len(MEAN)
    rows = [row(*MEAN) for _ in range(MEAN_FRAMES)]  # it writes into them
    frames = (ctypes.POINTER(ctypes.c_float) * MEAN_FRAMES)(*[ctypes.cast(r, ctypes.POINTER(ctypes.c_float)) for r in rows])
    lib.ps_start_utt(decoder)
    lib.ps_process_cep(decoder, frames, MEAN_FRAMES, 1, 0)
    lib.ps_end_utt(decoder)


def load(model):
    try:
        lib = ctypes.CDLL("libpocketsphinx.so.3")
        base = ctypes.CDLL("libsphinxbase.so.3")
    except OSError as e:
        sys.exit("libpocketsphinx.so.3 is not installed: apt-get install pocketsphinx (%s)" % e)
    pointer = ctypes.c_void_p
    base.err_set_logfp.argtypes = [pointer]
    base.err_set_logfp(None)  # logs nothing
    lib.ps_args.restype = pointer
    base.cmd_ln_parse_r.restype = pointer
    base.cmd_ln_parse_r.argtypes = [pointer, pointer, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int]
    lib.ps_init.restype = pointer
    lib.ps_init.argtypes = [pointer]
    lib.ps_start_utt.argtypes = [pointer]
    lib.ps_end_utt.argtypes = [pointer]
    lib.ps_process_raw.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    lib.ps_process_cep.argtypes = [pointer, pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    lib.ps_get_hyp.restype = ctypes.c_char_p
    lib.ps_get_hyp.argtypes = [pointer, pointer]
    # maxhmmpf bounds the work on sound that is like nothing; it takes a quarter of the time away and no words.
    args = ["parley", "-hmm", model + "/en-us", "-lm", model + "/en-us.lm.bin", "-dict", model + "/cmudict-en-us.dict",
            "-logfn", "/dev/null", "-maxhmmpf", "5000"]
    argv = (ctypes.c_char_p * len(args))(*[os.fsencode(a) for a in args])
    config = base.cmd_ln_parse_r(None, lib.ps_args(), len(args), argv, 0)
    decoder = config and lib.ps_init(config)
    if not decoder:
        sys.exit("the model in %s can't be loaded: apt-get install --reinstall pocketsphinx-en-us" % model)
    prime(lib, decoder)
    return lib, decoder


def listen(lib, decoder, stream):
    sound = stream.makefile("rb")
    begun = False
    while True:
        head = sound.read(5)
        if len(head) < 5:
            return
        kind, size = struct.unpack("<cI", head)
        pcm = sound.read(size)
        if not begun:
            lib.ps_start_utt(decoder)
        begun = kind == b"a"
        if pcm:
            lib.ps_process_raw(decoder, pcm, len(pcm) // 2, 0, 0)
        if not begun:
            lib.ps_end_utt(decoder)
        stream.sendall((lib.ps_get_hyp(decoder, None) or b"") + b"\n")


def main():
    control = socket.socket(fileno=3)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)  # a call's sound must go out on time, understanding it may take a little longer
    lib, decoder = load(sys.argv[1])
    libc = ctypes.CDLL(None)
    gc.disable()
    gc.freeze()
    control.send(b"ready")
    ears = {}
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            os.killpg(0, signal.SIGKILL)
        for ear, pid in list(ears.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del ears[ear]
        verb, ear = message.split()
        if verb == b"open":
            pid = os.fork()
            if pid == 0:
                libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                control.close()
                try:
                    listen(lib, decoder, socket.socket(fileno=descriptors[0]))
                finally:
                    os._exit(0)
            ears[ear] = pid
            os.close(descriptors[0])
        elif ear in ears:
            os.kill(ears[ear], signal.SIGKILL)


main()
