//! The service that writes and reads the book.

use std::pin::Pin;

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_runtime::grpc::to_status;
use callbook_store::write::Options;
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::directory_service_server::DirectoryService;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::decode::{self, Broken, filter, object};
use super::{Grpc, answer, encode};
use crate::check::{self, Subject};
use crate::page::size;
use crate::write::{self, Write};
use crate::{export, get, import, list, versions};

type Answer<T> = std::result::Result<Response<T>, Status>;

#[tonic::async_trait]
impl DirectoryService for Grpc {
    async fn create_row(&self, request: Request<wire::CreateRowRequest>) -> Answer<wire::CreateRowResponse> {
        answer(self.create(request).await)
    }

    async fn get_row(&self, request: Request<wire::GetRowRequest>) -> Answer<wire::GetRowResponse> {
        answer(self.get(request).await)
    }

    async fn replace_row(&self, request: Request<wire::ReplaceRowRequest>) -> Answer<wire::ReplaceRowResponse> {
        answer(self.replace(request).await)
    }

    async fn patch_row(&self, request: Request<wire::PatchRowRequest>) -> Answer<wire::PatchRowResponse> {
        answer(self.patch(request).await)
    }

    async fn delete_row(&self, request: Request<wire::DeleteRowRequest>) -> Answer<wire::DeleteRowResponse> {
        answer(self.delete(request).await)
    }

    async fn list_rows(&self, request: Request<wire::ListRowsRequest>) -> Answer<wire::ListRowsResponse> {
        answer(self.list(request).await)
    }

    async fn list_row_versions(
        &self,
        request: Request<wire::ListRowVersionsRequest>,
    ) -> Answer<wire::ListRowVersionsResponse> {
        answer(self.versions(request).await)
    }

    async fn restore_row(&self, request: Request<wire::RestoreRowRequest>) -> Answer<wire::RestoreRowResponse> {
        answer(self.restore(request).await)
    }

    async fn import_rows(
        &self,
        request: Request<Streaming<wire::ImportRowsRequest>>,
    ) -> Answer<wire::ImportRowsResponse> {
        let caller = self.writer(&request).await.map_err(|fault| to_status(&fault))?;
        let (options, text) = decode::import(request.into_inner()).await.map_err(|broken| match broken {
            Broken::Fault(fault) => to_status(&fault),
            Broken::Stream(status) => status,
        })?;
        answer(import::import(&self.0, &caller, text, options).await.map(encode::imported))
    }

    type ExportRowsStream = Pin<Box<dyn Stream<Item = Result<wire::ExportRowsResponse, Status>> + Send>>;

    async fn export_rows(&self, request: Request<wire::ExportRowsRequest>) -> Answer<Self::ExportRowsStream> {
        answer(self.export(request).await)
    }

    async fn check_row(&self, request: Request<wire::CheckRowRequest>) -> Answer<wire::CheckRowResponse> {
        answer(self.check(request).await)
    }
}

impl Grpc {
    async fn create(&self, request: Request<wire::CreateRowRequest>) -> Result<wire::CreateRowResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let what = Write::Create(object("row_json", &asked.row_json)?);
        let options = Options { if_match: None, allow_lookalike: asked.allow_lookalike };
        let written = write::write(&self.0, &caller, what, options).await?;
        Ok(wire::CreateRowResponse { write: Some(encode::write(written)) })
    }

    async fn get(&self, request: Request<wire::GetRowRequest>) -> Result<wire::GetRowResponse> {
        let caller = self.caller(&request).await?;
        let (shown, stale) = get::get(&self.0, &caller, &request.into_inner().key).await?;
        Ok(wire::GetRowResponse { row: Some(encode::row(&shown)), editable: shown.is_whole(), stale })
    }

    async fn replace(&self, request: Request<wire::ReplaceRowRequest>) -> Result<wire::ReplaceRowResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let what = Write::Replace(Key::parse(&asked.key)?, object("row_json", &asked.row_json)?);
        let options = Options { if_match: asked.if_match, allow_lookalike: asked.allow_lookalike };
        let written = write::write(&self.0, &caller, what, options).await?;
        Ok(wire::ReplaceRowResponse { write: Some(encode::write(written)) })
    }

    async fn patch(&self, request: Request<wire::PatchRowRequest>) -> Result<wire::PatchRowResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let what = Write::Patch(Key::parse(&asked.key)?, object("patch_json", &asked.patch_json)?);
        let options = Options { if_match: asked.if_match, allow_lookalike: false };
        let mut written = write::write(&self.0, &caller, what, options).await?;
        let fields = std::mem::take(&mut written.fields);
        Ok(wire::PatchRowResponse { write: Some(encode::write(written)), fields })
    }

    async fn delete(&self, request: Request<wire::DeleteRowRequest>) -> Result<wire::DeleteRowResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let key = Key::parse(&asked.key)?;
        let options = Options { if_match: asked.if_match, allow_lookalike: false };
        let deleted = callbook_store::write::delete(&self.0.writer(&caller), &key, options).await?;
        Ok(wire::DeleteRowResponse { key: asked.key, deleted: u32::from(deleted.deleted), revision: deleted.revision })
    }

    async fn list(&self, request: Request<wire::ListRowsRequest>) -> Result<wire::ListRowsResponse> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let filter = filter(asked.r#type, asked.category)?;
        let page = list::list(&self.0, &caller, &filter, size(asked.page_size, 100, 500), &asked.page_token).await?;
        Ok(wire::ListRowsResponse {
            rows: page.rows.iter().map(encode::row).collect(),
            count: encode::count(page.count),
            next_page_token: page.next,
            stale: page.stale,
        })
    }

    async fn versions(&self, request: Request<wire::ListRowVersionsRequest>) -> Result<wire::ListRowVersionsResponse> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let size = size(asked.page_size, 50, 200);
        let page = versions::versions(&self.0, &caller, &asked.key, size, &asked.page_token).await?;
        Ok(wire::ListRowVersionsResponse {
            versions: page.versions.iter().map(encode::version).collect(),
            next_page_token: page.next,
        })
    }

    async fn restore(&self, request: Request<wire::RestoreRowRequest>) -> Result<wire::RestoreRowResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let what = Write::Restore(Key::parse(&asked.key)?, asked.version);
        let options = Options { if_match: asked.if_match, allow_lookalike: true };
        let written = write::write(&self.0, &caller, what, options).await?;
        Ok(wire::RestoreRowResponse { write: Some(encode::write(written)) })
    }

    async fn export(
        &self,
        request: Request<wire::ExportRowsRequest>,
    ) -> Result<<Grpc as DirectoryService>::ExportRowsStream> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let export = export::export(&self.0, &caller, filter(asked.r#type, asked.category)?).await?;
        let chunks = export.map(|chunk| Ok(wire::ExportRowsResponse { chunk: chunk.into() }));
        Ok(Box::pin(tokio_stream::iter(chunks)))
    }

    async fn check(&self, request: Request<wire::CheckRowRequest>) -> Result<wire::CheckRowResponse> {
        use wire::check_row_request::Subject as Asked;
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let subject = match asked.subject {
            Some(Asked::Key(key)) => Subject::Stored(key),
            Some(Asked::RowJson(json)) => Subject::Given(object("row_json", &json)?),
            None => return Err(Fault::new(Reason::InvalidRequest, "name a key or give a row").with("field", "subject")),
        };
        let report = check::check(&self.0, &caller, subject, asked.allow_lookalike).await?;
        let violations = report.violations.into_iter().map(|violation| wire::Violation {
            code: violation.code.to_owned(),
            message: violation.message,
            how_to_fix: violation.how_to_fix,
        });
        Ok(wire::CheckRowResponse {
            key: report.key.to_string(),
            violations: violations.collect(),
            warnings: report.warnings,
            shaped_json: report.shaped.as_ref().map(encode::bytes),
        })
    }
}
