//! The limit: a hyper server that reads a request and answers a fixed kilobyte, set up as ours is.

use std::{convert::Infallible, net::Ipv4Addr};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Serves until the process ends. Prints the port first.
pub async fn serve() {
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    println!("{}", tcp.local_addr().expect("an address").port());
    let body = Bytes::from(vec![b'x'; 1024]);
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = tcp.accept().await else { return };
        let _ = stream.set_nodelay(true);
        let body = body.clone();
        connections.spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let body = body.clone();
                async move {
                    let _ = request.into_body().collect().await;
                    Ok::<_, Infallible>(Response::new(Full::new(body)))
                }
            });
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
