# The product in an image: one binary and what TLS and time zones need. Postgres is a service of its own.

# Both stages are of one release of Debian, so that the binary finds the C library that it was linked with.
ARG DEBIAN=trixie

FROM rust:1.95-slim-${DEBIAN} AS build
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY .sqlx .sqlx
COPY proto proto
COPY shared shared
COPY services services
COPY tests tests
ENV SQLX_OFFLINE=true
# the profile that is quick to build: optimised, without link-time optimisation
RUN cargo build --locked --profile bench --package callbook

FROM debian:${DEBIAN}-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/callbook --shell /usr/sbin/nologin callbook \
    && install --directory --owner callbook /var/lib/callbook
COPY --from=build /build/target/release/callbook /usr/local/bin/callbook
ENV CALLBOOK_DATA_DIR=/var/lib/callbook \
    CALLBOOK_HTTP=0.0.0.0:7700 \
    CALLBOOK_GRPC=0.0.0.0:7701 \
    CALLBOOK_ADMIN=0.0.0.0:7702
USER 10001
EXPOSE 7700 7701 7702
# the admin port is every role's; a gateway's own /readyz says in addition whether it reaches the others
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7702; printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3; grep -q '^HTTP/1.[01] 200 ' <&3"]
ENTRYPOINT ["callbook"]
CMD ["--help"]
