//! gRPC over TLS: the client trusts what its machine trusts, and nothing else.

use std::{process::Stdio, sync::Arc, time::Duration};

use duologue_a2a::{
    Credentials, Remote,
    a2a::{AgentInterface, TRANSPORT_PROTOCOL_GRPC},
};
use duologue_core::{Outcome, Session, SessionOptions};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

use crate::support::*;

/// Where the other half of the test finds the server.
const URL: &str = "DUOLOGUE_TEST_GRPC_TLS_URL";

/// An authority of the test's own, and a certificate of it for `localhost`.
fn certificates() -> (String, ServerConfig) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    let pem = authority.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, key);
    let own = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let signed = rcgen::CertificateParams::new(names).unwrap().signed_by(&own, &issuer).unwrap();
    let own = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], own)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (pem, config)
}

/// TLS in front of a server that has none.
async fn in_front_of(listener: TcpListener, config: ServerConfig, server: std::net::SocketAddr) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    while let Ok((line, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // Whoever does not trust the certificate hangs up here.
            let Ok(mut line) = acceptor.accept(line).await else { return };
            let mut inner = TcpStream::connect(server).await.unwrap();
            let _ = copy_bidirectional(&mut line, &mut inner).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_behind_tls_is_called_over_grpc_only_if_its_certificate_is_trusted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let secure = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let built = agent([Turn::text("Over TLS.")], &World::default()).build();
    let serving = Server::new(built, Arc::new(MemoryStore::new()))
        .card(move |card| {
            card.supported_interfaces = vec![AgentInterface::new(secure, TRANSPORT_PROTOCOL_GRPC)];
        })
        .start()
        .await
        .unwrap();
    let (authority, config) = certificates();
    let front = tokio::spawn(in_front_of(listener, config, serving.address()));

    // This machine does not know the test's authority.
    let error = Remote::connect(serving.url(), &Credentials::none()).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");

    // A process of its own is told to trust it, as a person would tell it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "grpc_tls::the_other_half", "--ignored", "--nocapture"])
        .env(URL, serving.url())
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let output = output.expect("it hangs").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    front.abort();
}

#[tokio::test]
#[ignore = "the test above starts it, in a process that trusts its authority"]
async fn the_other_half() {
    let Ok(url) = std::env::var(URL) else { return };
    let remote = Remote::connect(&url, &Credentials::none()).await.unwrap();
    assert!(remote.interface().url.starts_with("https://"));
    let store = Arc::new(MemoryStore::new());
    let session = Session::start(&remote.agent("far"), store, SessionOptions::default()).unwrap();
    let reply = session.reply("hello").await.unwrap();
    assert_eq!((reply.outcome.clone(), reply.text()), (Outcome::Completed, "Over TLS.".into()));
}
