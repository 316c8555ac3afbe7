# pgaccel as an image: built with Go and a C compiler, run on plain Debian.
#
#	docker build -t pgaccel .
#	docker build -t pgaccel-gpu --target gpu .
#
# The target gpu has besides the worker with CUDA, and NVRTC, and is to be run with --gpus all
# (NVIDIA's container toolkit gives it the driver). CUDA_VERSION is not to be newer than the
# driver: 13.0.1 from driver 580 on, 12.6.3 from 525 on, 11.8.0 with ubuntu22.04 from 520 on.
# Without BuildKit docker makes every stage above the one that it is asked for: there
# --target cpu, which is the last stage's other name, spares it the images with CUDA.
ARG GO_IMAGE=golang:1.26-bookworm
ARG RUN_IMAGE=debian:bookworm-slim
ARG CUDA_VERSION=13.0.1
ARG CUDA_OS=ubuntu24.04

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
# The SQL parser is PostgreSQL's, in C, and takes most of a build: it is compiled before the
# sources come, so that a change to them does not compile it again.
ENV GOFLAGS="-buildvcs=false -trimpath"
RUN go mod download && go build github.com/pganalyze/pg_query_go/v6
COPY . .
# What pgaccel says that it is: that of a release.
ARG VERSION=
RUN go build -ldflags="-s -X pgaccel/internal/server.version=${VERSION}" -o /pgaccel ./cmd/pgaccel

FROM ${RUN_IMAGE} AS cpu
# Authorities for TLS with the server (sslmode=verify-full).
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /pgaccel /usr/local/bin/
# A number, so that Kubernetes sees that it is not root. The home is a place for --data-dir.
RUN useradd --uid 6432 --user-group --home-dir /var/lib/pgaccel --no-create-home pgaccel \
	&& install -d -m 700 -o pgaccel -g pgaccel /var/lib/pgaccel
USER 6432
ENV PGACCEL_LISTEN=0.0.0.0:6432 PGACCEL_HTTP=0.0.0.0:8432
EXPOSE 6432 8432
# PGACCEL_HTTP may name another port. With --http '' docker is to be told --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["bash", "-c", "at=${PGACCEL_HTTP:-8432}; exec 3<>/dev/tcp/127.0.0.1/${at##*:} && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -qx ok <&3"]
ENTRYPOINT ["pgaccel"]
CMD ["serve"]

FROM nvidia/cuda:${CUDA_VERSION}-devel-${CUDA_OS} AS build-gpu
COPY --from=build /usr/local/go /usr/local/go
COPY --from=build /go /go
COPY --from=build /src /src
WORKDIR /src
ENV PATH=/usr/local/go/bin:$PATH GOPATH=/go GOFLAGS="-buildvcs=false -trimpath" CUDA_HOME=/usr/local/cuda
RUN scripts/cuda-env.sh go build -ldflags=-s -tags cuda -o /pgaccel-gpu ./cmd/pgaccel-gpu
# NVRTC is all of the toolkit that the worker opens; the links' names are what it looks for.
RUN mkdir /nvrtc && cp -a /usr/local/cuda/lib64/libnvrtc.so.* /usr/local/cuda/lib64/libnvrtc-builtins.so.* /nvrtc/

FROM nvidia/cuda:${CUDA_VERSION}-base-${CUDA_OS} AS gpu
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-gpu /nvrtc/ /usr/local/lib/
COPY --from=build-gpu /pgaccel-gpu /usr/local/bin/
COPY --from=build /pgaccel /usr/local/bin/
# As in the stage cpu. Compiled kernels are kept in the home, too.
RUN useradd --uid 6432 --user-group --home-dir /var/lib/pgaccel --no-create-home pgaccel \
	&& install -d -m 700 -o pgaccel -g pgaccel /var/lib/pgaccel
USER 6432
ENV PGACCEL_LISTEN=0.0.0.0:6432 PGACCEL_HTTP=0.0.0.0:8432
EXPOSE 6432 8432
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["bash", "-c", "at=${PGACCEL_HTTP:-8432}; exec 3<>/dev/tcp/127.0.0.1/${at##*:} && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -qx ok <&3"]
ENTRYPOINT ["pgaccel"]
CMD ["serve"]

FROM cpu
