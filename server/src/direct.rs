//! HTTP/1.1 requests of the plain form, read and answered without hyper.
//!
//! Nearly all requests come whole, have a length and want one answer. For these a connection is a buffer to read from and one
//! to write to. The first request that is anything else (HTTP/2, a body in pieces, a head that is not all there, an upgrade,
//! nonsense) ends the plain part of its connection: hyper gets it with all that was read and not answered, and keeps it.
//!
//! Holds: a request is answered here only if hyper would have read the same of it; answers go out in the order of
//! requests; what nobody waits for any more is given up.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use mayfly_cosmos::RawHead;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    time::timeout,
};

use crate::{
    lookout::{Lookout, Watched},
    request::Request,
    respond::Outgoing,
};

/// Room to read into: most requests are shorter.
const READ_BYTES: usize = 4096;

/// The longest body that is read here; larger ones are few, and better read as they come.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// How long the rest of a body may take. Where it comes slowly there is nothing to be gained here.
const BODY_TIMEOUT: Duration = Duration::from_millis(50);

/// How much of the next requests is read while one is being answered.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Up to here it costs less to copy a body behind its head than to send two pieces.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// Buffers that have grown beyond are not kept: that of a connection, which may have nothing to say for long, and that of a thread.
const READ_KEPT_BYTES_MAX: usize = 16 * 1024;
const SPARE_KEPT_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// For answers: one for all connections of a thread, as most are sent at once.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Serves requests of the plain form, until the connection ends or `is_ending`. Gives back a connection with something else on
/// it, and what was read of that. `all_answered` tells how many requests have come to the server, if all are answered.
pub async fn serve<I, F, A>(
    mut io: I,
    is_ending: &AtomicBool,
    all_answered: impl Fn() -> Option<u64>,
    answer: F,
) -> io::Result<Option<Rewound<I>>>
where
    I: AsyncRead + AsyncWrite + Watched + Unpin,
    F: Fn(Request) -> A,
    A: Future<Output = Outgoing>,
{
    let (mut buffer, mut lookout) = (Vec::new(), Lookout::default());
    loop {
        if buffer.is_empty() && !some_comes(&mut io, &mut buffer, is_ending).await? {
            break;
        }
        let Some(head) = whole_request(&mut io, &mut buffer).await? else {
            return Ok(Some(Rewound { first: buffer.into(), io }));
        };
        let (end, is_last) = (head.bytes() + head.body_bytes(), head.is_last());
        let body = Bytes::copy_from_slice(&buffer[head.bytes()..end]);
        drop(buffer.drain(..end));
        let answered = unless_gone(&mut io, &mut buffer, answer(Request::raw(head, body))).await;
        let Some(answered) = answered else { break };
        let is_last = is_last || is_ending.load(Relaxed);
        send(&mut io, answered, is_last).await?;
        if is_last {
            break;
        }
        if buffer.is_empty() {
            lookout.look(&all_answered, &io);
        }
    }
    // A client that has left already does not mind.
    let _ = io.shutdown().await;
    Ok(None)
}

/// Waits for bytes; says whether there are any, or it is the end.
async fn some_comes<I>(io: &mut I, buffer: &mut Vec<u8>, is_ending: &AtomicBool) -> io::Result<bool>
where
    I: AsyncRead + Unpin,
{
    if buffer.capacity() > READ_KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
    buffer.reserve(READ_BYTES);
    poll_fn(|context| match is_ending.load(Relaxed) {
        true => Poll::Ready(Ok(false)),
        false => pin!(io.read_buf(buffer)).poll(context).map_ok(|count| count > 0),
    })
    .await
}

/// The head of the request that the buffer begins with, once all of its body is there too. `None` if it is not for here.
async fn whole_request<I>(io: &mut I, buffer: &mut Vec<u8>) -> io::Result<Option<Box<RawHead>>>
where
    I: AsyncRead + Unpin,
{
    let Some(head) = RawHead::read(buffer).filter(|head| head.body_bytes() <= BODY_BYTES_MAX) else {
        return Ok(None);
    };
    let end = head.bytes() + head.body_bytes();
    if buffer.len() >= end {
        return Ok(Some(head));
    }
    buffer.reserve(end - buffer.len());
    let rest = async {
        while buffer.len() < end {
            if io.read_buf(buffer).await? == 0 {
                // To tell the client what is missing is hyper's part.
                return Ok(None);
            }
        }
        Ok(Some(head))
    };
    timeout(BODY_TIMEOUT, rest).await.unwrap_or(Ok(None))
}

/// What comes of an answer in the making; `None` if the client leaves before. Meanwhile more requests may come in.
async fn unless_gone<I, A>(io: &mut I, buffer: &mut Vec<u8>, answer: A) -> Option<A::Output>
where
    I: AsyncRead + Unpin,
    A: Future,
{
    let mut answer = pin!(answer);
    poll_fn(|context| {
        if let Poll::Ready(answered) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answered));
        }
        while buffer.len() < AHEAD_BYTES_MAX {
            if !matches!(ready!(pin!(io.read_buf(buffer)).poll(context)), Ok(1..)) {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

async fn send<I>(io: &mut I, answer: Outgoing, is_last: bool) -> io::Result<()>
where
    I: AsyncWrite + Unpin,
{
    let mut out = SPARE.take();
    out.clear();
    let body = answer.write_head(is_last, &mut out);
    if body.len() <= COPIED_BYTES_MAX {
        out.extend_from_slice(&body);
        io.write_all(&out).await?;
    } else {
        io.write_all_buf(&mut Buf::chain(&out[..], body)).await?;
    }
    io.flush().await?;
    if out.capacity() <= SPARE_KEPT_BYTES_MAX {
        SPARE.set(out);
    }
    Ok(())
}

/// A connection of which something was read that is to be read again.
#[derive(Debug)]
pub struct Rewound<I> {
    first: Bytes,
    io: I,
}

impl<I: AsyncRead + Unpin> AsyncRead for Rewound<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(context, into);
        }
        let count = self.first.len().min(into.remaining());
        into.put_slice(&self.first.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Rewound<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
