/*
 * longhaul_control.h: congestion control for Longhaul's simulator, in C or C++.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The simulator starts a program for each flow, tells it of every acknowledgement and every
 * change of state, and waits for its answer: the window, the pacing rate, the slow-start
 * threshold. A controller is a loop:
 *
 *     #include <longhaul_control.h>
 *
 *     int main(void)
 *     {
 *         struct lh_event event;
 *         while (lh_next(&event)) {
 *             ... update cwnd and ssthresh from the event ...
 *             lh_answer(cwnd, LH_NONE, ssthresh);
 *         }
 *         return 0;
 *     }
 *
 * Build it with `cc -O2 -o mine mine.c`; run it with `longhaul sim run --control ./mine`.
 * With -std=c11 or the like, add -D_DEFAULT_SOURCE. Include this file in one source file only.
 * The guide: docs/guides/own-controller.md.
 *
 * Time is virtual: it does not advance until the answer is there, so the result does not depend
 * on how long an answer takes. It is an error if one takes longer than 1 s. To be
 * reproducible, a controller asks no clock and draws random numbers from event.seed.
 */
#ifndef LONGHAUL_CONTROL_H
#define LONGHAUL_CONTROL_H

#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little-endian"
#endif

/* "LHCTRL" and two zeros, in the order of bytes in memory. */
#define LH_MAGIC UINT64_C(0x00004c525443484c)
/* Version of the records below. */
#define LH_VERSION UINT64_C(1)
/* Environment variable with the number of the descriptor of the shared page. */
#define LH_VARIABLE "LONGHAUL_CONTROL_FD"
/* For lh_answer: not paced; no threshold yet. */
#define LH_NONE UINT64_C(0)

/* lh_event.kind: what happened. All fields that are not named are zero. */
enum {
    /* The flow begins: mss, seed, flow. The answer is the initial window. */
    LH_START = 1,
    /* An acknowledgement came: all fields from flags to rate_lost. */
    LH_ACK = 2,
    /* A loss was detected, or marks were echoed; recovery begins: in_flight, sent_to,
       first_lost, lost. The answered ssthresh is the window to reduce to. */
    LH_CONGESTION = 3,
    /* All that was in flight when recovery began is acknowledged: cwnd holds again. */
    LH_RECOVERY_END = 4,
    /* The retransmission timer expired: as LH_CONGESTION. LH_IS_NEW is not set if the
       window was reduced for these losses before. */
    LH_TIMEOUT = 5,
    /* The recovery was needless (reordering, delay): the window is again what it was. */
    LH_UNDO = 6,
    /* Data is sent after a pause: idle_ns, timeouts. */
    LH_IDLE_END = 7,
    /* The simulation has ended; lh_next returns 0 then. No answer is due. */
    LH_STOP = 8
};

/* lh_event.flags. */
enum {
    /* The window limited the sender within the last round trip; where not, it should not grow. */
    LH_CWND_LIMITED = 1,
    /* rtt_ns is known: of the newest packet delivered, if it was sent once. */
    LH_HAS_RTT = 2,
    /* srtt_ns is known. */
    LH_HAS_SRTT = 4,
    /* rate_* is a sample of the delivery rate. */
    LH_HAS_RATE = 8,
    /* The application had nothing to send at some time in it: a lower bound only. */
    LH_RATE_APP_LIMITED = 16,
    /* LH_CONGESTION, LH_TIMEOUT: the window was not yet reduced for this. */
    LH_IS_NEW = 32
};

/* lh_event.phase. */
enum { LH_OPEN = 0, LH_RECOVERY = 1, LH_LOSS = 2 };

/* What happened. Windows and counts are in packets of `mss` bytes, times in ns. */
struct lh_event {
    uint64_t kind;
    /* Virtual time since the simulation began. */
    uint64_t now_ns;
    uint64_t flags;
    uint64_t phase;
    /* Packets newly acknowledged in order. */
    uint64_t newly_acked;
    /* Packets newly acknowledged or selectively acknowledged. */
    uint64_t newly_delivered;
    /* Packets newly detected as lost. */
    uint64_t newly_lost;
    /* Packets delivered since the flow began, these included. */
    uint64_t delivered;
    /* Packets newly reported with a CE mark. */
    uint64_t newly_marked;
    /* The next packet expected in order (snd_una). */
    uint64_t acked_to;
    /* The next new packet to be sent (snd_nxt). */
    uint64_t sent_to;
    /* Packets in flight after this acknowledgement, and before it. */
    uint64_t in_flight;
    uint64_t prior_in_flight;
    uint64_t rtt_ns;
    /* Smoothed RTT (RFC 6298). */
    uint64_t srtt_ns;
    /* Packets delivered from the sending of the newest delivered packet until now. */
    uint64_t rate_delivered;
    /* Packets that had been delivered when it was sent. */
    uint64_t rate_prior_delivered;
    /* The longer of the times in which they were sent and acknowledged; 0: no rate. */
    uint64_t rate_interval_ns;
    /* Packets in flight when it was sent, that one included. */
    uint64_t rate_in_flight;
    /* Packets lost since then. */
    uint64_t rate_lost;
    /* The first packet newly detected as lost. */
    uint64_t first_lost;
    /* Packets lost that are not yet retransmitted. */
    uint64_t lost;
    /* How long nothing was in flight, and how many retransmission timeouts that is. */
    uint64_t idle_ns;
    uint64_t timeouts;
    /* Payload of a packet, bytes. */
    uint64_t mss;
    /* For random numbers. */
    uint64_t seed;
    /* Number of the flow, from 1. */
    uint64_t flow;
    uint64_t reserved[5];
};

/* lh_reply.flags. */
enum {
    LH_PACED = 1,
    LH_HAS_SSTHRESH = 2,
    /* The controller's window holds in recovery too; without this the simulator reduces it
       to ssthresh by Proportional Rate Reduction (RFC 9937). */
    LH_CONTROLS_RECOVERY = 4
};

/* An answer. */
struct lh_reply {
    uint64_t flags;
    /* Window, packets: 1 to 2^32. */
    uint64_t cwnd;
    /* With LH_PACED: bit/s, 1 to 2^50. */
    uint64_t pacing_bps;
    /* With LH_HAS_SSTHRESH: packets, 1 to 2^32. */
    uint64_t ssthresh;
    /* Smallest burst while paced, packets: 1 to 64. Linux: 2. */
    uint64_t min_burst;
    /* Windows by which the send buffer is sized (Linux's sndbuf_expand: 2, BBR 3): 1 to 64. */
    uint64_t send_buffer_windows;
    /* Number of the event that this answers, from 1; lh_answer_with sets it. */
    uint64_t event;
    uint64_t reserved;
};

/* Counts how often it was rung; `sleeps` is 1 while somebody sleeps until it is again. */
struct lh_bell {
    uint32_t count;
    uint32_t sleeps;
};

/* The shared page, 4096 bytes. */
struct lh_page {
    uint64_t magic;
    /* Version that the simulator speaks, and that the program does. */
    uint64_t version;
    uint64_t program_version;
    uint64_t reserved0[5];
    /* At 64: the simulator rings it for an event. */
    struct lh_bell event_bell;
    uint64_t reserved1[7];
    /* At 128. */
    struct lh_event event;
    uint64_t reserved2[8];
    /* At 448: the program rings it for an answer. */
    struct lh_bell reply_bell;
    uint64_t reserved3[7];
    /* At 512. */
    struct lh_reply reply;
    uint64_t reserved4[440];
};

static struct lh_page *lh_page_;
static uint32_t lh_heard_;
static pid_t lh_parent_;

/* Maps the page. Returns 0, or -1 with a line on standard error. */
static inline int lh_open(void)
{
    const char *number = getenv(LH_VARIABLE);
    void *mapped;
    if (number == NULL) {
        fputs("not started by longhaul: use longhaul sim run --control PROGRAM\n", stderr);
        return -1;
    }
    mapped = mmap(NULL, sizeof *lh_page_, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(number), 0);
    if (mapped == MAP_FAILED) {
        perror(LH_VARIABLE);
        return -1;
    }
    lh_page_ = (struct lh_page *)mapped;
    if (lh_page_->magic != LH_MAGIC || lh_page_->version != LH_VERSION) {
        fprintf(stderr, "this longhaul speaks version %llu of longhaul_control.h, not %llu\n",
                (unsigned long long)lh_page_->version, (unsigned long long)LH_VERSION);
        return -1;
    }
    lh_page_->program_version = LH_VERSION;
    lh_parent_ = getppid();
    return 0;
}

/* Waits for the next event. Returns 1, or 0 when the simulation has ended. */
static inline int lh_next(struct lh_event *event)
{
    struct lh_bell *bell;
    if (lh_page_ == NULL && lh_open() != 0)
        return 0;
    bell = &lh_page_->event_bell;
    while (__atomic_load_n(&bell->count, __ATOMIC_SEQ_CST) == lh_heard_) {
        const struct timespec second = {1, 0};
        __atomic_store_n(&bell->sleeps, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &bell->count, FUTEX_WAIT, lh_heard_, &second, NULL, 0);
        __atomic_store_n(&bell->sleeps, 0, __ATOMIC_SEQ_CST);
        /* The simulator has gone without a word. */
        if (getppid() != lh_parent_)
            return 0;
    }
    lh_heard_++;
    memcpy(event, &lh_page_->event, sizeof *event);
    return event->kind != LH_STOP;
}

/* Answers the event, with every setting there is. */
static inline void lh_answer_with(const struct lh_reply *reply)
{
    struct lh_bell *bell = &lh_page_->reply_bell;
    memcpy(&lh_page_->reply, reply, sizeof *reply);
    lh_page_->reply.event = lh_heard_;
    __atomic_add_fetch(&bell->count, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bell->sleeps, __ATOMIC_SEQ_CST) != 0)
        syscall(SYS_futex, &bell->count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Answers the event: window in packets, pacing rate in bit/s or LH_NONE, slow-start threshold
   in packets or LH_NONE. */
static inline void lh_answer(uint64_t cwnd, uint64_t pacing_bps, uint64_t ssthresh)
{
    struct lh_reply reply;
    memset(&reply, 0, sizeof reply);
    reply.flags = (pacing_bps != LH_NONE ? LH_PACED : 0) |
                  (ssthresh != LH_NONE ? LH_HAS_SSTHRESH : 0);
    reply.cwnd = cwnd;
    reply.pacing_bps = pacing_bps;
    reply.ssthresh = ssthresh;
    reply.min_burst = 2;
    reply.send_buffer_windows = 2;
    lh_answer_with(&reply);
}

#endif
